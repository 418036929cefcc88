"""P008: a release at cluster scope in a loop."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Program
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import MULTICAST, edit

PAGE = Page(
    code="P008",
    title="a cluster-wide release in a loop",
    statement="`lm.arrive(.., order=\"cluster\")` stands where ordinary accesses really must be ordered over the cluster, and not in the hot loop otherwise.",
    why="It puts a device-wide memory barrier into the consumer's loop: measured 1.26 times slower for a GEMM and 1.17 times for k-means on an H200.",
    failing=edit(MULTICAST, ("lm.arrive(empty, stage=s)", 'lm.arrive(empty, stage=s, order="cluster")')),
    passing=MULTICAST,
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    for s in sites(program).of("arrive"):
        if s.op.attrs.get("order") == "cluster" and any(x.kind != "tiles" for x in s.loops):
            span = s.op.spans.get("order", s.op.span)
            yield Fault("P008", 'order="cluster" puts a device-wide memory barrier into this loop', span, ((s.loops[-1].head, "runs every iteration"),),
                        "a slot that only the tensor core reads needs no order beyond the arrival", (Fix((Edit(span, "None"),), "likely", "the default order"),), {}, severity="note")  # fmt: skip

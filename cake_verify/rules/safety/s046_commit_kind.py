"""S046: a commit completes a barrier that counts commits."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.acting import acting
from cake_ir.derive.arrivals import units
from cake_ir.derive.structure import Site
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.ops.effects import Commit
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import TENSOR_MEMORY, edit

PAGE = Page(
    code="S046",
    title="a commit on a barrier that counts something else",
    statement='`lm.commit` arrives once, when the tensor-core work of its thread has completed; the barrier that it names counts commits (`arrive="mma"`), not the arrivals of every thread or warp of the role.',
    why="The hardware barrier expects the arrivals of its kind. One commit leaves the phase open, and whoever waits for it waits for ever.",
    failing=edit(TENSOR_MEMORY, ('arrive="mma"', 'arrive="thread"')),
    passing=TENSOR_MEMORY,
    sources=("HW053", "HW087"),
)


def check(program: Program) -> Iterator[Fault]:
    commits: dict[str, list[Site]] = {}
    for s in acting(program).get(Commit, ()):
        barrier = program.barriers.get(str(s.op.attrs.get("barrier")))
        if barrier is not None and barrier.arrive != "mma" and s.role in barrier.prod and units(program, barrier, s.role) != 1:
            commits.setdefault(barrier.name, []).append(s)
    for name, found in commits.items():
        barrier = program.barriers[name]
        span = barrier.spans.get("arrive", barrier.span)
        fixes = (Fix((Edit(span, '"mma"'),), "likely", 'count commits: `arrive="mma"`'),) if "arrive" in barrier.spans else ()
        count = units(program, barrier, found[0].role)
        message = f"a commit arrives on `{name}` once, but it counts {count} arrivals of `{found[0].role}`, one a {barrier.arrive}"
        yield Fault("S046", message, span, tuple((s.op.span, "committed here") for s in found[:2]), 'declare it with `arrive="mma"`', fixes,
                    {"barrier": name, "expected": "mma", "found": barrier.arrive})  # fmt: skip

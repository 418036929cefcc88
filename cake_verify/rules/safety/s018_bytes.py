"""S018: the bytes of a phase are not the same on every path."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.clusters import is_tx_load
from cake_ir.derive.structure import sites
from cake_ir.derive.transactions import transactions
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S018",
    title="the bytes of a phase are not the same on every path",
    statement='All loads of one role on one slot form the set of a phase; set and bytes are the same on every path, and the barrier counts one arrival a role member beside them (`arrive="tx"`).',
    why="The expected number is announced once, in front of the first load: with fewer bytes the phase never completes, with more it completes early.",
    failing=edit(LOOP, ("                b.tma_load(B, coords=(k * 64, t.n * 128), stage=s, barrier=full)\n", "                if k > 0:\n                    b.tma_load(B, coords=(k * 64, t.n * 128), stage=s, barrier=full)\n")),
    passing=LOOP,
    sources=("HW046",),
)


def check(program: Program) -> Iterator[Fault]:
    """Uneven sets, and loads that complete on a barrier which does not count bytes."""
    yield from transactions(program)[1]
    for s in sites(program):
        barrier = program.barriers.get(str(s.op.attrs.get("barrier")))
        if barrier is None or barrier.arrive in ("tx", "member", "mma") or not is_tx_load(s, program):
            continue
        fixes = (Fix((Edit(barrier.spans["arrive"], '"tx"'),), "likely", 'count bytes: `arrive="tx"`'),) if "arrive" in barrier.spans else ()
        message = f"the load completes on `{barrier.name}` by bytes, but `{barrier.name}` counts arrivals by {barrier.arrive}"
        yield Fault("S018", message, s.op.spans.get("barrier", s.op.span), ((barrier.span, "declared here"),), help='declare it with `arrive="tx"`', fixes=fixes,
                    facts={"barrier": barrier.name, "expected": "tx", "found": barrier.arrive})  # fmt: skip

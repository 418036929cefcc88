"""S018: the bytes of a phase are not the same on every path."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.arrivals import units
from cake_ir.derive.clusters import is_tx_load
from cake_ir.derive.structure import Site, sites
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
    """Uneven sets, and loads that complete on a barrier which counts more than one arrival a member beside their bytes."""
    yield from transactions(program)[1]
    loads: dict[str, list[Site]] = {}
    for s in sites(program):
        barrier = program.barriers.get(str(s.op.attrs.get("barrier")))
        if barrier is None or not is_tx_load(s, program) or units(program, barrier, s.role) == 1:
            continue
        if s.role in barrier.prod:
            loads.setdefault(barrier.name, []).append(s)
        else:
            names = ", ".join(f"`{r}`" for r in barrier.prod)
            right = [b.name for b in program.barriers.values() if b.pipeline == barrier.pipeline and b.arrive == "tx" and s.role in b.prod]
            named = (Fix((Edit(s.op.spans["barrier"], right[0]),), "likely", f"complete on `{right[0]}`"),) if len(right) == 1 and "barrier" in s.op.spans else ()
            yield Fault("S018", f"the load completes on `{barrier.name}`, on which {names} arrives by {barrier.arrive}", s.op.spans.get("barrier", s.op.span),
                        ((barrier.span, "declared here"),), help=f"name the barrier that is declared for this load: `{right[0]}`" if right else "name the barrier that is declared for this load",
                        fixes=named, facts={"barrier": barrier.name, "role": s.role})  # fmt: skip
    for name, found in loads.items():
        barrier = program.barriers[name]
        span = barrier.spans.get("arrive", barrier.span)
        fixes = (Fix((Edit(span, '"tx"'),), "likely", 'count bytes: `arrive="tx"`'),) if "arrive" in barrier.spans else ()
        message = f"loads complete on `{name}` by bytes, but it counts arrivals by {barrier.arrive}"
        yield Fault("S018", message, span, tuple((s.op.span, "completes here") for s in found[:2]), help='declare it with `arrive="tx"`', fixes=fixes,
                    facts={"barrier": name, "expected": "tx", "found": barrier.arrive})  # fmt: skip

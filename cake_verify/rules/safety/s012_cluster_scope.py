"""S012: slots that a peer writes are freed for this CTA only."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.clusters import is_tx_load
from cake_ir.derive.pairs import joins
from cake_ir.derive.structure import sites
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import MULTICAST, edit

PAGE = Page(
    code="S012",
    title="slots that a peer writes are freed for this CTA only",
    statement='A barrier that guards multicast loads has `scope="cluster"`: it counts the arrivals of every CTA that reads the slot. A barrier on which loads complete counts its own CTA only, unless a role that multiplies for a pair of CTAs waits on it.',
    why="A multicast load writes the slot in every CTA of its axis, whoever issues it; a peer that is slower still reads it.",
    failing=edit(MULTICAST, (', scope="cluster")', ")")),
    passing=MULTICAST,
    sources=("HW047", "HW072", "HW094"),
)


def check(program: Program) -> Iterator[Fault]:
    """Barriers of cluster scope on which loads complete: each CTA announces its own bytes, nobody else's."""
    for barrier in program.barriers.values():
        if barrier.scope != "cluster" or barrier.arrive != "tx" or program.launch.cluster == (1, 1) or barrier.name in joins(program):
            continue
        loads = [s for s in sites(program) if s.op.attrs.get("barrier") == barrier.name and is_tx_load(s, program)]
        if not loads:
            continue
        span = barrier.spans.get("scope", barrier.span)
        fixes = (Fix((Edit(span, '"cta"'),), "likely", 'write `scope="cta"`'),) if "scope" in barrier.spans else ()
        message = f"loads complete on `{barrier.name}`, which counts arrivals from the whole cluster: each CTA announces the bytes of its own barrier only"
        yield Fault("S012", message, span, ((loads[0].op.span, "completes here"),), help='`scope="cta"` is right here, also for multicast loads', fixes=fixes,
                    facts={"barrier": barrier.name, "expected": "cta", "found": "cluster"})  # fmt: skip

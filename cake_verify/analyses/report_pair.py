"""Faults of pairs of CTAs whose cause is a barrier that joins only one of them."""

from __future__ import annotations

from collections.abc import Callable

from cake_ir.derive.pairs import paired_roles
from cake_ir.fault import Fault, Fix
from cake_ir.program import Barrier
from cake_ir.types import ViewT
from cake_verify.analyses import edits
from cake_verify.analyses.replay import Replay
from cake_verify.analyses.report_site import Site


def unjoined(r: Replay, fault: Fault) -> Fault:
    """The fault told at the barrier that should have joined the pair, where there is one; else as it is."""
    paired = paired_roles(r.plan.program)
    if not paired:
        return fault
    found = _alone(r, paired)
    if found is None:
        return fault
    barrier, message = found
    span = barrier.spans.get("scope")
    fix: Fix = edits.replace(span, '"cluster"', title='write `scope="cluster"`') if span is not None else edits.add_argument(barrier.span, 'scope="cluster"')
    facts = {"barrier": barrier.name, "expected": "cluster", "found": barrier.scope, "setting": str(r.setting)}
    related = [x for x in fault.related if x[0] not in (barrier.span, fault.span)]
    return Fault("S012", message, span or barrier.span, ((fault.span, "here it shows"), *related[:2]), f'`{barrier.name}` joins the pair with `scope="cluster"`', (fix,), facts, fault.trace)


def _alone(r: Replay, paired: frozenset[str]) -> tuple[Barrier, str] | None:
    """A barrier of one CTA beside a role that multiplies for two, and what goes wrong by it."""
    if r.found is not None and r.found.code in ("S003", "S004", "S006", "S027") and r.found.member is not None and r.found.member.role in paired:
        if r.found.data["cta"] is r.found.member.cta:
            return None
        site = Site(r, r.found)
        e = site.op.operands.get(site.operand)
        copied = isinstance(getattr(e, "type", None), ViewT)
        for b in _within(r, lambda b: paired.issuperset(b.cons)):
            if copied and b.name in {s.op.attrs["barrier"] for t in r.plan.sets for s in t.loads if getattr(s.op.operands["view"].type, "view", "") == site.view}:  # type: ignore[union-attr]  # loads fill views
                return b, f"`{b.name}` counts the copies of each CTA apart, and `{site.member.role}` multiplies for both: it does not wait for the other CTA's part of `{site.view}`"
            if not copied and b.arrive not in ("tx", "mma"):
                return b, f"`{b.name}` counts the arrivals of each CTA apart, and `{site.member.role}` multiplies for both: it does not wait until the other CTA's `{site.view}` is free"
    for m in r.stuck or ():
        name = str(r.plan.program.ops[m.pending[0]].attrs.get("barrier")) if m.pending is not None and m.pending[0] >= 0 else ""
        for b in _within(r, lambda b: paired.issuperset(b.prod)):
            if b.name == name and m.cta.rank & 1:
                return b, f"`{b.name}` is given by `{b.prod[0]}`, which runs in the leader of a pair only, and is told to this CTA alone: `{m.role}` of the other one waits for ever"
    return None


def _within(r: Replay, fits: Callable[[Barrier], bool]) -> list[Barrier]:
    """The barriers of one CTA that fit."""
    return [b for b in r.plan.program.barriers.values() if b.scope != "cluster" and b.prod and b.cons and fits(b)]


__all__ = ["unjoined"]

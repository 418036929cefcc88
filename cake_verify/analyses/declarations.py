"""Faults whose cause is a declaration: views that overlap by accident, rings and views of different depth.

The walk meets such a fault at an operation; where the declarations contradict each other the report starts there and keeps the
operation as a consequence.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

from cake_ir.fault import Fault
from cake_ir.layout import total_bytes
from cake_ir.ops.effects import Issue
from cake_ir.program import View
from cake_ir.span import Span
from cake_verify.analyses.regions import layout_of
from cake_verify.analyses.replay import Replay

_ORDER = frozenset({"S003", "S004", "S005", "S008", "S011", "S020", "S021", "S022", "S023", "S032"})


def blame(r: Replay, fault: Fault) -> Fault:
    """The fault with the declarations that explain it in front."""
    if fault.code == "S007":
        return _overlap(r, fault)
    return _depth(r, fault) if fault.code in _ORDER else fault


def _riders(r: Replay, copies: bool = False) -> dict[str, set[str]]:
    """Views that ride on each ring; `copies`: only those that asynchronous copies fill."""
    out: dict[str, set[str]] = {}
    for s in r.plan.sites.values():
        for operand, mode, _ in r.touches(s.op):
            ring = r.plan.ring_of(s.op, operand)
            if ring is not None and (not copies or ("w" in mode and r.is_a(s.op, Issue))):
                out.setdefault(ring, set()).add(s.op.operands[operand].type.view)  # type: ignore[union-attr]  # touches name view operands
    return out


def _depth(r: Replay, fault: Fault) -> Fault:
    """A ring with more or fewer slots than the views that ride on it."""
    program = r.plan.program
    for ring, views in _riders(r).items():
        stages = program.rings[ring].stages
        odd = [v for v in sorted(views) if program.views[v].stages != stages]
        if not odd:
            continue
        if len(odd) == len(views):
            text = f"`{ring}` has {stages} slots, {' and '.join(f'`{v}`' for v in odd[:2])} {'has' if len(odd) == 1 else 'have'} {program.views[odd[0]].stages} stages"
            where = program.rings[ring].spans.get("stages", program.rings[ring].span)
        else:
            text = f"`{odd[0]}` has {program.views[odd[0]].stages} stages on a ring of {stages} slots"
            where = program.views[odd[0]].spans.get("stage", program.views[odd[0]].span)
        return _put(fault, where, f"{text}: {fault.message}")
    return fault


def _overlap(r: Replay, fault: Fault) -> Fault:
    """The two views that share bytes; the later one is named first where both are filled by copies, which is never meant."""
    program = r.plan.program
    views, named = list(program.views.values()), str(fault.facts.get("view", ""))
    mine = [i for i, v in enumerate(views) if v.name == named]
    its = ((views[min(i, k)], views[max(i, k)]) for k in mine for i in range(len(views)) if i != k)
    pair = next((p for p in chain(its, combinations(views, 2)) if p[0].pool == p[1].pool and _meet(*p)), None)
    if pair is None:
        return fault
    first, second = pair
    filled = {v for views in _riders(r, copies=True).values() for v in views}
    if {first.name, second.name} <= filled:
        message = f"`{second.name}` shares bytes with `{first.name}`, and both are filled by copies: {fault.message}"
        return _put(fault, second.spans.get("offset", second.span), message, (first.spans.get("offset", first.span), f"`{first.name}` lies here"))
    notes = tuple((v.spans.get("offset", v.span), f"`{v.name}` starts at byte {v.offset}") for v in (second, first))
    return replace(fault, related=(*notes, *fault.related))


def _meet(a: View, b: View) -> bool:
    end_a, end_b = a.offset + total_bytes(layout_of(a)), b.offset + total_bytes(layout_of(b))
    return a.offset < end_b and b.offset < end_a


def _put(fault: Fault, span: Span, message: str, *more: tuple[Span, str]) -> Fault:
    """The fault told at a declaration, its operation first among the related places."""
    return replace(fault, span=span, message=message, related=(*more, (fault.span, "here it shows"), *fault.related))

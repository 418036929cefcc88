"""Guarded accesses of every tile, member and iteration against the extents that parameters declare.

A run walks the tiles of one block, and the tile where a guard lets one row too many through may be another block's. Here the coordinates
of each execution are evaluated for a few small arguments, with the conditions around it; what is found is a counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cake_ir.derive.structure import conjuncts
from cake_ir.program import Expr, If, Param, Program
from cake_ir.types import FragT, TileT
from cake_verify.analyses.positions import (
    Position,
    TooMany,
    arguments,
    around,
    declared_values,
    memory_alone,
    parameters,
    positions,
    turning,
    valued,
)
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.runs import mask_ends, reach_of, run_of
from cake_verify.analyses.sites import Site, covered
from cake_verify.analyses.trips import resolver_of

CHOICES = 4
"""Sets of arguments that are tried for one access."""
FURTHER = 24
"""Further ones, as long as the conditions around it have kept it from running: `if t.p > 0` where K is too short for two parts."""

_OTHER = {"lt": "<=", "le": "<", "gt": ">=", "ge": ">"}
_MOVING = frozenset({"field", "var", "role_index", "cta_rank", "cta_id"})
_DECIDES = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"})
_STRICTER = {"le": "lt", "ge": "gt"}


@dataclass(frozen=True, slots=True)
class Outside:
    """One execution that leaves its tensor: along `axis` it touches element `last` of `extent`; `given` says where and for what.

    `guard` is the branch that lets it through, `loose` the comparison there that would not if it were `tighter`.
    """

    axis: int
    last: int
    extent: int
    given: str
    guard: If | None
    loose: Expr | None
    tighter: str


def outside(program: Program, site: Site, tensor: Param) -> Outside | None:
    """The first execution of a guarded access that leaves its tensor; None where none is found or the conditions are not numbers."""
    entries = _entries(site)
    masked, unknown = mask_ends(program, site)
    if not tensor.extents or len(entries) != len(tensor.extents) or unknown.issuperset(range(len(entries))):
        return None
    resolve = resolver_of(program, site.role.name)
    run = reach_of if site.op.operands.get("mask") is None else run_of  # a mask counts elements, not what their numbers are divided by
    laid = [(resolve(e), covered(site.op, k)) if not isinstance(e.type, FragT) else run(program, site.role.name, e) or (Expr("read"), 1) for k, e in enumerate(entries)]
    at = [Expr("read") if k in unknown else e for k, (e, _) in enumerate(laid)]
    ends_at = [e for _, e in masked]
    conds = around(site, program)
    if any(isinstance(n.type, FragT) for e in (*at, *conds) for n in e.parts()):
        return None
    keeping = [c for e in conds for c in conjuncts(e) if not memory_alone(c) and any(n.op == "ld" for n in c.parts())]
    kept = {t for c in keeping for t in _moved(c)}
    front = frozenset[int]()
    if kept:  # what is read may be what keeps the coordinates inside that move with what it is compared with, at the end that it is compared with
        held = [k for k, e in enumerate(at) if not kept.isdisjoint(_moved(e))]
        front = frozenset(k for k in held if all(_from_above(c) for c in keeping) and not any(n.op == "ld" for n in at[k].parts()))
        if front and _stated(program, keeping):
            front, held = frozenset(), []  # all that is stated may be there
        at = [Expr("read") if k in held and k not in front else e for k, e in enumerate(at)]
    read = [e.op == "read" or (e.op != "const" and any(n.op == "ld" for n in e.parts())) for e in at]
    if all(read):
        return None
    extents = list(reversed(tensor.extents))
    at = [Expr("read") if r else e for e, r in zip(at, read, strict=True)]  # nothing is known of these
    conds += ends_at
    names = parameters(program, [*at, *conds, *(Expr("param", (), {"name": e}) for e in extents if isinstance(e, str))])
    told = {str(n.attrs["tensor"]) for e in conds for n in e.parts() if n.op == "ld"}
    ends: tuple[bool | str, ...] = (False, True) if len(told) == 1 else (False, *_apart(site, resolve, conds, told))  # the greatest numbers of two tensors need not come together
    stands = _Laid([valued(program, e) for e in at], [n for _, n in laid], [(k, valued(program, e), any(n.op == "ld" for n in e.parts())) for k, e in masked], front)
    near = turning(conds)
    few = CHOICES + sum(map(len, near.values()))
    ran = False
    for tried, args in enumerate(arguments(program, names, (2,), few if not conds else few + FURTHER, near=near)):
        if ran and tried >= few:
            break
        for high in ends:
            found = _first(program, site, stands, extents, args, names, high)
            if isinstance(found, Outside):
                return found
            ran = ran or found
    return None


def _stated(program: Program, conds: Sequence[Expr]) -> bool:
    """Whether one tensor that conditions look at has a stated range, and its numbers are no offsets, which belong together."""
    told = {str(n.attrs["tensor"]) for c in conds for n in c.parts() if n.op == "ld"}
    return len(told) == 1 and told.isdisjoint(prefix_tensors(program)) and all(declared_values(program, t) is not None for t in told)


def _from_above(c: Expr) -> bool:
    """Whether a comparison with what memory holds keeps numbers below it: those in front of a tensor are let through. The end of a loop keeps none of them out either."""
    if c.op not in _DECIDES:
        return True
    low, high = (c.args[0], c.args[1]) if c.op in ("lt", "le") else (c.args[1], c.args[0]) if c.op in ("gt", "ge") else (c, c)
    return c is not low and not any(n.op == "ld" for n in low.parts()) and not any(n.op in _MOVING for n in outside_reads(high))


def _moved(e: Expr) -> set[str]:
    """The fields of tiles, the rounds and the member that an expression looks at, whatever else is in it."""
    return {f"{n.op}.{n.attrs.get('name', '')}" for n in e.parts() if n.op in _MOVING and not isinstance(n.type, TileT)}


def _apart(site: Site, resolve: Callable[[Expr], Expr], conds: Sequence[Expr], told: set[str]) -> list[str]:
    """Of two tensors the one that loops end by, where they begin by the other one: a last round runs wherever the first one is."""
    loops = [(resolve(x.lo), resolve(x.hi)) for x in site.loops if x.lo is not None and x.hi is not None]
    begin, end = ({str(n.attrs["tensor"]) for x in loops for n in x[k].parts() if n.op == "ld"} for k in (0, 1))
    guarded = any(n.op == "ld" for p in site.path if isinstance(p, If) for n in resolve(p.cond).parts())
    return [*end] if len(begin) == len(end) == 1 and begin != end and begin | end == told and not guarded else []


def _entries(site: Site) -> list[Expr]:
    coords = site.op.operands.get("coords")
    found = coords if isinstance(coords, tuple) else (site.op.operands.get("i"),)
    return [e for e in found if isinstance(e, Expr)]


@dataclass(frozen=True, slots=True)
class _Laid:
    """Where an access starts along every axis, how many elements it covers there, and how many of these a mask lets through, by axis and with whether memory says so;
    the axes of which only the `front` end is looked at."""

    at: list[Callable[[Position], Any]]
    sizes: list[int]
    masked: list[tuple[int, Callable[[Position], Any], bool]]
    front: frozenset[int] = frozenset()


def _first(program: Program, site: Site, laid: _Laid, extents: Sequence[int | str], args: dict[str, int], names: set[str], high: bool | str) -> Outside | bool:
    """The first execution outside; else whether there is one at all."""
    sizes = [e if isinstance(e, int) else args.get(e) for e in extents]
    bad: list[tuple[Position, int, int, int]] = []
    ran = False
    try:
        for p in positions(program, site, args, high, free=True):
            if p.inside:
                ran = True
                if (wrong := _past(laid, sizes, p)) is not None:
                    bad.append((p, *wrong))
    except TooMany:
        return True
    if not bad:
        return ran
    p, axis, last, extent = bad[0]
    guard, loose, tighter = _loose(program, site, [p for p, *_ in bad])
    return Outside(axis, last, extent, _given(p, site, names), guard, loose, tighter)


def _past(laid: _Laid, sizes: Sequence[int | None], p: Position) -> tuple[int, int, int] | None:
    """(axis, the element, the extent) where an execution leaves the tensor."""
    covers, unread = [*laid.sizes] if laid.masked else laid.sizes, set[int]()
    for axis, value, reads in laid.masked:
        through = value(p)
        if not isinstance(through, int) or (reads and through < 1):
            unread.add(axis)  # some memory lets an element through
        elif through < 1:
            return None
        else:
            covers[axis] = min(covers[axis], through)
    for axis, (value, n, size) in enumerate(zip(laid.at, covers, sizes, strict=True)):
        first = None if axis in unread else value(p)
        if not isinstance(first, int) or isinstance(first, bool) or size is None:
            continue
        last = first + n - 1
        if first < 0 or (last >= size and axis not in laid.front):
            return axis, first if first < 0 else last, size
    return None


def _given(p: Position, site: Site, names: set[str]) -> str:
    text = p.shown(names)
    return f"{text}, member {p.member}" if site.role.members > 1 else text


def _loose(program: Program, site: Site, bad: Sequence[Position]) -> tuple[If | None, Expr | None, str]:
    """The innermost branch with the comparison that, without its equality, would keep all of these out, and the relation that it should have."""
    resolve = resolver_of(program, site.role.name)
    guards = [s for s in site.path if isinstance(s, If)]
    for guard, arm in list(zip(guards, site.arms, strict=True))[::-1]:
        for cond in conjuncts(guard.cond) if arm else ():
            if cond.op in _STRICTER and not memory_alone(resolve(cond)) and cond.span.line and cond.span.line == cond.span.end_line:
                strict = Expr(_STRICTER[cond.op], tuple(resolve(a) for a in cond.args), cond.attrs, cond.type, cond.span)
                if not any(p.value(strict) is not False for p in bad):
                    return guard, cond, _OTHER[cond.op]
    return (guards[-1] if guards else None), None, ""


__all__ = ["Outside", "outside"]

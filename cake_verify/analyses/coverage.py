"""Which elements of an output the stores of a schedule leave out, whatever memory holds: every execution for a few small arguments.

A store covers at least nothing and at most what is counted here: a condition, a coordinate, a number of rounds or of rows that depends on memory, on
a rank or on a counter is taken to be whatever covers most. What is left out then, is left out in every run with those arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import lcm, prod
from operator import add
from typing import Any

from cake_ir.derive.structure import conjuncts
from cake_ir.program import Expr, For, If, Param, Program
from cake_ir.record import record
from cake_ir.types import FragT, TileT
from cake_verify.analyses.fixed_scalars import definitions
from cake_verify.analyses.positions import Position, TooMany, arguments, around, loop_values, parameters, turning
from cake_verify.analyses.runs import mask_ends, run_of
from cake_verify.analyses.sites import Site, boxed, sites
from cake_verify.analyses.tape import tape
from cake_verify.analyses.trips import resolver_of

EXECUTIONS = 600
"""Executions of all stores of a tensor that are looked at for one set of arguments."""
TRIED = 12
"""Sets of arguments."""
ROUNDS = 8
"""Rounds of a persistent loop in which its slots are looked at."""

Box = tuple[tuple[int, int], ...]
"""First element and end along every axis, innermost first."""


@record(eq=False)
class Hole:
    """An element, innermost first, that no store covers for `args`; `round` is the round of the tile loop in which that is so, where it is one of several;
    `other` is what some store covers, if any does."""

    element: tuple[int, ...]
    size: tuple[int, ...]
    args: Mapping[str, int]
    names: frozenset[str]
    nearest: Site
    round: int | None
    other: Box | None


class _At(Position):
    """A position where nothing is known of what memory holds."""

    __slots__ = ()

    def _read(self, tensor: str, e: Expr) -> int | None:
        return None


@record(eq=False)
class _Store:
    """One store: `exprs` are where it starts along every axis, then further numbers; `length` is how many elements it covers along each.

    `counted` says by axis which of the numbers is the length instead, `only` at which of them a mask ends.
    """

    site: Site
    exprs: tuple[Expr, ...]
    length: list[int]
    counted: dict[int, int]
    only: list[tuple[int, int]]


def hole(program: Program, stores: Sequence[Site], tensor: Param) -> Hole | None:
    """An element that none of the stores of a tensor covers; None where there is none, or too much is not known."""
    if len(stores) == 1 and _plain(program, stores[0]):
        return None  # its strides and counts decide (Q001, Q012)
    extents = list(reversed(tensor.extents))
    read = [_read(program, s, len(extents)) for s in stores]
    if not extents or any(r is None for r in read):
        return None
    laid = [r for r in read if r is not None]
    slots = _slots(program, stores)
    exprs = [e for r in laid for e in r.exprs]
    exprs += [e for s in stores for e in around(s, program)]
    names = frozenset(parameters(program, [*exprs, *(Expr("param", (), {"name": e}) for e in extents if isinstance(e, str))]))
    mentioned = {str(n.attrs["name"]) for e in exprs for n in e.parts() if n.op == "param"}
    fixed = definitions([c for a in program.assumes for c in conjuncts(a.cond)], names)
    loose = len(mentioned - {*extents} - {*fixed}) > 1
    axes = [k for k, e in enumerate(extents) if not loose or isinstance(e, int) or e in fixed]  # of arguments that may belong together in a way that nothing states, those have to do
    choices = _choices(program, laid)
    if any(not dividing for dividing in choices):
        still = _standing(program, laid)
    elif choices:
        still, axes, loose = None, [k for k in axes if isinstance(extents[k], int) or extents[k] in fixed], True
    else:
        still = None
    if still is not None and not still:
        return None
    found: Hole | None = None
    near = turning(e for s in stores for e in around(s, program)) if axes else {}
    enough = 1 + len({n for v in near.values() for n in v})
    for tried, args in enumerate(arguments(program, names, (2,), TRIED, near=near) if axes else ()):
        size = tuple(e if isinstance(e, int) else args.get(e, 0) for e in extents)
        if min(size) < 1:
            return None
        try:
            now = _left_out(program, laid, size, axes if still is None else still, still is not None, args, names, slots)
        except TooMany:
            return None
        if loose:
            if now is None:
                return None
            found = found or (now if now.other is not None else None)
        elif now is not None or tried > enough:
            return now
    return found


def _plain(program: Program, s: Site) -> bool:
    """Whether nothing but tiles and numbers decides how often a store runs, nothing cuts it, and it moves."""
    if any(isinstance(p, If) for p in s.path) or s.op.operands.get("mask") is not None or s.op.operands.get("rows") is not None:
        return False
    coords = s.op.operands["coords"]
    assert isinstance(coords, tuple)  # as of every store
    if any(isinstance(c.type, FragT) for c in coords) or all(c.op == "const" for c in coords):
        return False
    resolve = resolver_of(program, s.role.name)
    bounds = [resolve(e) for loop in s.loops for e in (loop.lo, loop.hi) if e is not None]
    return all(e.op in ("const", "param") for e in bounds)


def _read(program: Program, s: Site, rank: int) -> _Store | None:
    """What a store covers, in expressions; None where it is no store of boxes."""
    op, role = s.op, s.role.name
    resolve, coords = resolver_of(program, role), op.operands.get("coords")
    if op.name not in ("store", "tma_store", "bulk_store") or not isinstance(coords, tuple) or len(coords) != rank:
        return None
    exprs: list[Expr] = []
    length = [boxed(s.op, k) for k in range(rank)]
    for axis, e in enumerate(coords):
        if isinstance(e.type, FragT):
            run = run_of(program, role, e)
            length[axis] = run[1] if run is not None else 1
            exprs.append(_bound(run[0]) if run is not None else Expr("read"))
        else:
            exprs.append(_bound(resolve(e)))
    rows, view = op.operands.get("rows"), op.operands.get("view")
    counted: dict[int, int] = {}
    if isinstance(rows, Expr) and op.attrs.get("box") is None and isinstance(view, Expr) and rank > 1:
        counted[1] = rank
        exprs.append(_bound(resolve(rows)))
    only = []
    for axis, e in mask_ends(program, s)[0]:
        only.append((axis, len(exprs)))
        exprs.append(_bound(e))
    return _Store(s, tuple(exprs), length, counted, only)


# ------------------------------------------------------------------ slots of persistent loops


def _bound(e: Expr) -> Expr:
    """`e` with the index of a slot under the name of its ring."""
    named: dict[int, Expr] = {}
    if e.args and any(n.op == "slot_index" for n in e.parts()):
        for n in e.parts():  # operands first
            if n.op == "slot_index" and n.args[0].op == "step":
                named[id(n)] = Expr("var", (), {"name": f"slot of {n.args[0].attrs['ring']}"})
            elif any(id(a) in named for a in n.args):
                named[id(n)] = Expr(n.op, tuple([named.get(id(a), a) for a in n.args]), n.attrs, n.type, n.span)
    return named.get(id(e), e)


def _slots(program: Program, stores: Sequence[Site]) -> dict[str, int]:
    """The rings that conditions around the stores look at and that advance once a tile in a persistent loop, with their stages."""
    found: dict[str, int] = {}
    for s in stores:
        resolve = resolver_of(program, s.role.name)
        for n in (n for p in s.path if isinstance(p, If) for n in resolve(p.cond).parts() if n.op == "slot_index" and n.args[0].op == "step"):
            ring = str(n.args[0].attrs["ring"])
            steps = [b for (role, _), bs in sites(program).bindings.items() if role == s.role.name for b in bs if any(x.op == "step" and x.attrs["ring"] == ring for x in b.value.parts())]
            once = len(steps) == 1 and steps[0].value.op == "step" and [isinstance(p, For) and p.kind == "tiles" for p in steps[0].path] == [True]
            if once and program.launch.grid == "persistent" and all(f"slot of {ring}" not in found or x.role is s.role for x in stores):
                found[f"slot of {ring}"] = program.rings[ring].stages
    return found


# ------------------------------------------------------------------ executions


def _left_out(program: Program, laid: Sequence[_Store], size: tuple[int, ...], axes: Sequence[int], chosen: bool, args: Mapping[str, int], names: frozenset[str],
              slots: Mapping[str, int]) -> Hole | None:  # fmt: skip
    """The first element that no store covers; of each row of them along the other axes than `axes` all or none counts, and if these are `chosen`, only
    those of which some store covers a part."""
    rounds = lcm(*slots.values()) if slots else 1
    for turn in range(rounds if rounds <= ROUNDS else 0):
        where = {name: turn % stages for name, stages in slots.items()}
        boxes: dict[Box, Site] = {}
        left = EXECUTIONS
        for r in laid:
            for p in (p for member in range(r.site.role.members) for p in _executions(program, r.site, _At(program, args, where, member))):
                left -= 1
                if left < 0:
                    raise TooMany
                box = _box(r, p, size)
                if box is not None:
                    boxes.setdefault(box if chosen else tuple([x if k in axes else (0, whole) for k, (x, whole) in enumerate(zip(box, size, strict=True))]), r.site)
        for part, room, at in _parts(boxes, size, axes) if chosen else ((boxes, size, (0,) * len(size)),):
            if sum(prod(e - a for a, e in box) for box in part) < prod(room):
                element = _first(part, room)
                near = min(part.items(), key=lambda b: _distance(b[0], element))[1] if part else laid[-1].site
                return Hole(tuple(map(add, at, element)), size, args, names, near, turn if rounds > 1 else None, next(iter(part), None))
    return None


def _parts(boxes: Mapping[Box, Site], size: tuple[int, ...], axes: Sequence[int]) -> Iterator[tuple[dict[Box, Site], tuple[int, ...], tuple[int, ...]]]:
    """The rows along `axes` that some box starts at: what covers a part of each, its size, and where it is along the other axes."""
    seen: set[tuple[int, ...]] = set()
    for box in boxes:
        at = tuple([a for a, _ in box])
        row = tuple([x for k, x in enumerate(at) if k not in axes])
        if row in seen:
            continue
        seen.add(row)
        here = {b: s for b, s in boxes.items() if all(k in axes or a <= at[k] < e for k, (a, e) in enumerate(b))}
        part = {tuple([x if k in axes else (0, 1) for k, x in enumerate(b)]): s for b, s in here.items()}
        yield part, tuple([n if k in axes else 1 for k, n in enumerate(size)]), tuple([0 if k in axes else x for k, x in enumerate(at)])


def _choices(program: Program, laid: Sequence[_Store]) -> list[bool]:
    """Of each condition around a store about something that moves the stores, whether it divides outputs: both of its arms store. Otherwise
    which places are written is the author's choice."""
    moving = set().union(*(_terms(e) for r in laid for e in r.exprs[: len(r.length)]))
    return [_stores(program, p, r.site.role.name, True) and _stores(program, p, r.site.role.name, False)
            for r in laid for p in r.site.path if isinstance(p, If) and moving & _terms(resolver_of(program, r.site.role.name)(p.cond))]  # fmt: skip


def _stores(program: Program, branch: If, role: str, arm: bool) -> bool:
    """Whether an arm of a branch stores to global memory."""
    return any(s.op.name in _STORING and any(p is branch and a is arm for p, a in s.branches()) for s in sites(program).of_role(role))


_STORING = ("store", "tma_store", "bulk_store", "atomic", "tma_reduce")


def _terms(e: Expr) -> set[str]:
    """Tile fields, variables and the member in an expression."""
    out = {f"{n.args[0].attrs.get('name')}.{n.attrs['name']}" for n in e.parts() if n.op == "field"}
    out |= {str(n.attrs["name"]) for n in e.parts() if n.op == "var" and not isinstance(n.type, TileT)}
    return out | {"member" for n in e.parts() if n.op == "role_index"}


def _standing(program: Program, laid: Sequence[_Store]) -> list[int]:
    """The axes along which every store starts at numbers, or at those of rounds of fixed number."""
    def fixed(r: _Store, e: Expr) -> bool:
        loops = {x.var for x in r.site.loops if x.kind == "static" or (x.lo is not None and x.hi is not None and x.lo.op == x.hi.op == "const")}
        return all(n.op in ("const", "add", "sub", "mul", "neg") or (n.op == "var" and n.attrs["name"] in loops) for n in e.parts())

    return [k for k in range(len(laid[0].length)) if all(fixed(r, r.exprs[k]) for r in laid)]


def _executions(program: Program, s: Site, p: Position, depth: int = 0, arm: int = 0) -> Iterator[Position]:
    """The executions of a store, those that may be among them included."""
    if depth == len(s.path):
        yield p
        return
    around_, resolve = s.path[depth], resolver_of(program, s.role.name)
    if isinstance(around_, If):
        if _may(p, _bound(resolve(around_.cond)), s.arms[arm]):
            yield from _executions(program, s, p, depth + 1, arm + 1)
        return
    for v in _values(program, around_, p, resolve):
        yield from _executions(program, s, _At(program, p.args, {**p.names, around_.var: v}, p.member), depth + 1, arm)


def _may(p: Position, cond: Expr, arm: bool) -> bool:
    held = [p.value(c) for c in conjuncts(cond)]
    return all(h is None or h for h in held) if arm else any(h is None or not h for h in held)


def _values(program: Program, loop: For, p: Position, resolve: Any) -> Iterator[Any]:
    """What a loop's variable takes; one round of nothing that is known where its bounds are not."""
    if loop.kind == "tiles" and program.schedulers[str(loop.scheduler)].kind == "grouped":
        yield {}
        return
    if loop.kind != "tiles" and (loop.lo is None or loop.hi is None or None in p.values((resolve(loop.lo), resolve(loop.hi)))):
        yield None
        return
    for v, _, _ in loop_values(program, loop, p, resolve):
        yield v


def _box(r: _Store, p: Position, size: tuple[int, ...]) -> Box | None:
    """What one execution covers at most inside the tensor; None if nothing."""
    known = tape(p.program, r.exprs).run(p)
    box: list[tuple[int, int]] = []
    for axis, whole in enumerate(size):
        at, many = known[axis], known[r.counted[axis]] if axis in r.counted else r.length[axis]
        box.append((max(at, 0), min(at + many, whole)) if isinstance(at, int) and isinstance(many, int) else (0, whole))
    for axis, k in r.only:
        at, end = known[axis], known[k]
        if isinstance(at, int) and isinstance(end, int):
            box[axis] = box[axis][0], min(box[axis][1], at + end)
    for a, e in box:
        if a >= e:
            return None
    return tuple(box)


def _first(boxes: Mapping[Box, Site], size: tuple[int, ...]) -> tuple[int, ...]:
    """The first element, outermost axis slowest, that no box holds: such a one lies where every coordinate is a box's end or nothing."""
    ends = [sorted({0, *(b[k][1] for b in boxes if b[k][1] < whole)}) for k, whole in enumerate(size)]

    def search(axis: int, left: list[Box]) -> tuple[int, ...] | None:
        if axis < 0:
            return None if left else ()
        for at in ends[axis]:
            found = search(axis - 1, [b for b in left if b[axis][0] <= at < b[axis][1]])
            if found is not None:
                return (*found, at)
        return None

    return search(len(size) - 1, list(boxes)) or tuple(0 for _ in size)


def _distance(box: Box, element: tuple[int, ...]) -> int:
    return sum(max(a - x, x - e + 1, 0) for (a, e), x in zip(box, element, strict=True))


__all__ = ["Hole", "hole"]

"""D067: copies in front of a loop and those in it leave no tile out between them."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, For, If, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, boxed, constant_rounds, sites
from cake_verify.analyses.trips import linear, resolver_of, spoken, written
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.consistency.d065_same_product import LARGEST
from cake_verify.rules.examples import edit

PAGE = Page(
    code="D067",
    title="a tile between the copies in front of a loop and those in it, or in both",
    statement="Where copies in front of a loop bring the first tiles of a tensor along an axis and a copy in it goes on tile by tile, it goes on with the tile behind theirs.",
    why="A loop that fetches one tile too far ahead never brings the tile in between: its place is taken by the next one, while masks and positions count on.",
    failing=edit(LARGEST, ("(j + 1) * 64", "(j + 2) * 64")),
    passing=LARGEST,
    limits="Decided where both bring whole tiles of one size to one view and start at constants apart, and just one tile lies between them, or is brought twice behind others. A single tile in front of a loop that begins with it may have served something else.",
)

_COPIES = ("cp_async", "tma_load")


def check(program: Program) -> Iterator[Fault]:
    copies = sites(program).of(*_COPIES)
    by: dict[tuple[str, str], list[Site]] = {}
    for s in copies if len(copies) > 1 else ():
        by.setdefault((s.role.name, str(s.op.attrs["tensor"])), []).append(s)
    for found in by.values():
        for s in found[1:]:
            fault = _between(program, s, found) if s.loops and s.loops[-1].kind != "tiles" else None
            if fault is not None:
                yield fault
                return


def _between(program: Program, s: Site, copies: list[Site]) -> Fault | None:
    """The tile that lies between what copies in front of a loop have brought and the first that the loop's own copy brings."""
    loop = s.loops[-1]
    if _later(program, s, loop) or loop.lo is None or loop.lo.op != "const" or (len(s.loops) > 1 and s.loops[-2].kind != "tiles"):
        return None
    view = s.op.operands["view"]
    before = [o for o in copies if o.order < s.order and loop not in o.loops and isinstance(view, Expr) and isinstance(x := o.op.operands["view"], Expr) and x.type == view.type]
    outside = [o for o in before if not any(isinstance(p, If) and p not in s.path for p in o.path if not _counted(o))]
    coords = s.op.operands["coords"]
    if not outside or not isinstance(coords, tuple):
        return None
    for axis in range(len(coords)):
        step = boxed(s.op, axis)
        own = _start(program, s, axis, loop, step)
        if own is None:
            continue
        first = own[0] + step * int(str(loop.lo.attrs["value"]))
        there: dict[int, Site] = {}
        for o in outside:
            for tile in _tiles(program, o, axis, step, own[1]):
                there[tile] = o
        if not there or not _others_alike(program, s, next(iter(there.values())), axis):
            continue
        last, at, more = max(there), s.op.spans.get("coords", s.op.span), ((loop.head, f"goes on from `{written(loop.var)}` = {spoken(loop.lo)}"),)
        facts: dict[str, object] = {"role": s.role.name, "axis": axis}
        perhaps = {tile for o in before for tile in _tiles(program, o, axis, step, own[1])}  # also in an arm, as that of a first round by itself
        if first - step not in perhaps and first - 2 * step in there:
            message = f"{call(s.op)} goes on at {first} of axis {axis}, and the copies in front of the loop end at {first - step}: nothing brings the {step} between"
            return Fault("D067", message, at, ((there[first - 2 * step].op.span, "the last one in front of the loop"), *more), f"go on where they end, {step} sooner", (), facts)
        if first == last and 0 == min(there) != last:  # those in front begin where the tensor does
            message = f"{call(s.op)} goes on at {first} of axis {axis}, which the copies in front of the loop have brought: they end at {first + step}"
            return Fault("D067", message, at, ((there[last].op.span, "brought here"), *more), f"go on where they end, {step} later, or let them end {step} sooner", (), facts)
    return None


def _later(program: Program, s: Site, loop: For) -> bool:
    """Whether a branch in the loop keeps its first rounds out: `if k > 0:`."""
    for branch, arm in s.branches():
        c = branch.cond if branch in s.path[s.path.index(loop) :] and arm else None
        if c is not None and c.op in ("gt", "ge", "ne") and linear(resolver_of(program, s.role.name)(c.args[0]))[1] == {f"?{loop.var}": 1} and c.args[1].op == "const":
            return True
    return False


def _counted(o: Site) -> bool:
    """Whether a copy stands in a loop that counts tiles: a branch there asks whether its tile exists."""
    return bool(o.loops) and o.loops[-1].kind != "tiles"


def _start(program: Program, s: Site, axis: int, loop: For, step: int) -> tuple[int, dict[str, int]] | None:
    """Where a copy starts at 0 of the loop that moves it by whole tiles, and the terms that are not the loop's."""
    coords = s.op.operands["coords"]
    assert isinstance(coords, tuple)
    if isinstance(coords[axis].type, FragT):
        return None
    constant, terms = linear(resolver_of(program, s.role.name)(coords[axis]))
    rest = {t: c for t, c in terms.items() if t != f"?{loop.var}"}
    return (constant, rest) if terms.get(f"?{loop.var}") == step else None


def _tiles(program: Program, o: Site, axis: int, step: int, rest: dict[str, int]) -> list[int]:
    """Where the tiles start that a copy in front of the loop brings: one, or those of a loop between two numbers."""
    coords = o.op.operands["coords"]
    assert isinstance(coords, tuple)
    if axis >= len(coords) or isinstance(coords[axis].type, FragT) or boxed(o.op, axis) != step:
        return []
    constant, terms = linear(resolver_of(program, o.role.name)(coords[axis]))
    inner = o.loops[-1] if o.loops and o.loops[-1].kind != "tiles" else None
    if inner is None:
        return [constant] if terms == rest else []
    rounds = constant_rounds(inner)
    if rounds is None or inner.lo is None or terms.get(f"?{inner.var}") != step or {t: c for t, c in terms.items() if t != f"?{inner.var}"} != rest:
        return []
    lo = int(str(inner.lo.attrs["value"]))
    return [constant + step * (lo + i) for i in range(min(rounds, 64))]


def _others_alike(program: Program, s: Site, o: Site, axis: int) -> bool:
    """Whether two copies differ in nothing but one coordinate."""
    resolve, one, other = resolver_of(program, s.role.name), s.op.operands["coords"], o.op.operands["coords"]
    assert isinstance(one, tuple) and isinstance(other, tuple)
    return len(one) == len(other) and all(k == axis or linear(resolve(a)) == linear(resolve(b)) for k, (a, b) in enumerate(zip(one, other, strict=True)))

"""Tiles of sequences that offsets in memory mark off: where the first one starts, and how far the last one reaches.

A loop over `lm.cdiv(P[s + 1] - P[s], T)` tiles from `P[s]` on, or from `P[s]` to `P[s + 1]`, ends at the end of its sequence: the last
sequence ends where the offsets do, which is the end of the tensor where `lm.assume_values` says that the offsets reach its extent.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.structure import conjuncts
from cake_ir.program import Expr, For, Param, Program
from cake_ir.record import record
from cake_ir.types import FragT
from cake_verify.analyses.positions import declared_values
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.runs import at_least, defined, mask_ends, run_of
from cake_verify.analyses.sites import Site, covered
from cake_verify.analyses.trips import linear, resolver_of


@record()
class Ragged:
    """A coordinate that steps through a sequence of `offsets`: tiles of `tile` elements, the first one `late` elements behind the start."""

    offsets: str
    axis: int
    e: Expr
    loop: For
    tile: int
    late: int


def steps_of(program: Program, s: Site) -> Iterator[Ragged]:
    """The coordinates of an access that step through sequences, one tile a round of a loop that takes as many as there are."""
    coords, offsets = s.op.operands.get("coords"), prefix_tensors(program)
    if not offsets or not isinstance(coords, tuple):
        return
    resolve = resolver_of(program, s.role.name)
    for axis, e in enumerate(coords):
        if isinstance(e.type, FragT):
            continue
        constant, terms = linear(resolve(e))
        for loop in s.loops:
            tile = terms.get(f"?{loop.var}", 0)
            if tile < 1 or loop.lo is None or loop.hi is None:
                continue
            base = {t: n for t, n in terms.items() if t != f"?{loop.var}"}
            name = _sequence(resolve(loop.lo), resolve(loop.hi), base, tile)
            if name in offsets:
                yield Ragged(name, axis, e, loop, tile, constant)


def _sequence(lo: Expr, hi: Expr, base: dict[str, int], tile: int) -> str:
    """The tensor of offsets whose sequence the tiles of a loop cover, from its first element on."""
    if hi.op == "cdiv" and hi.args[1].op == "const" and hi.args[1].attrs["value"] == tile and linear(lo) == (0, {}):
        constant, length = linear(hi.args[0])
        end = _plus(length, base)
        return _head(base) if not constant and len(base) == 1 and _next(base, end) else ""
    (a, start), (b, end) = linear(lo), linear(hi)
    return _head(start) if not (a or b or base) and tile == 1 and _next(start, end) else ""


def _plus(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {t: n for t in {*a, *b} if (n := a.get(t, 0) + b.get(t, 0))}


def _head(terms: dict[str, int]) -> str:
    return next(iter(terms), "").partition("[")[0]


def _next(start: dict[str, int], end: dict[str, int]) -> bool:
    """Whether the second is the offset behind the first: both stand once, in one tensor."""
    return len(start) == len(end) == 1 and set(start.values()) == set(end.values()) == {1} and start != end and _head(start) == _head(end) and "[" in next(iter(start))


@record()
class Beyond:
    """An access of the last sequence that goes on behind its end, which is the tensor's: by `by` elements at least, or (None) by what a tile has more."""

    offsets: str
    axis: int
    by: int | None
    mask: Expr | None = None
    loop: For | None = None


def beyond_end(program: Program, s: Site, tensor: Param) -> Beyond | None:
    """The first axis along which an ordinary access leaves its tensor behind the last sequence."""
    if s.op.attrs.get("clip") or s.op.operands.get("rows") is not None or s.op.attrs.get("ctas") == 2:
        return None
    mask, offsets = s.op.operands.get("mask"), prefix_tensors(program)
    coords = s.op.operands.get("coords")
    if not offsets or not isinstance(coords, tuple):
        return None
    if isinstance(mask, Expr):
        n = len(tensor.extents)
        return next((x for x in _masked(program, s, coords, mask) if n == len(coords) and x.offsets in offsets and _reach(program, x.offsets, tensor.extents[n - 1 - x.axis])), None)
    for r in steps_of(program, s):
        if r.axis < len(tensor.extents) and _reach(program, r.offsets, tensor.extents[len(tensor.extents) - 1 - r.axis]) and covered(s.op, r.axis) + r.late > 1 and not _asked(program, s, r):
            return Beyond(r.offsets, r.axis, None, None, r.loop)
    return _let_through(program, s, tensor, coords, offsets) if s.op.name == "load" and len(tensor.extents) == len(coords) else None  # a store into the next sequence is S013's


def _let_through(program: Program, s: Site, tensor: Param, coords: tuple[Expr, ...], offsets: frozenset[str]) -> Beyond | None:
    """A whole tile under a condition that asks for less of it to be left: `if q * 64 < P[s + 1] - P[s]` in front of 64 rows from `P[s] + q * 64` on."""
    conds = [c for branch, arm in s.branches() if arm for c in conjuncts(branch.cond) if c.op in ("lt", "le", "gt", "ge")]
    resolve = resolver_of(program, s.role.name)
    for axis, e in enumerate(coords) if conds else ():
        run = run_of(program, s.role.name, e) if isinstance(e.type, FragT) else (resolve(e), covered(s.op, axis))
        at, live = linear(run[0]) if run is not None else (0, {})
        start = {t: n for t, n in live.items() if "[" in t}
        if run is None or run[1] < 2 or len(start) != 1 or _head(start) not in offsets or not _reach(program, _head(start), tensor.extents[len(coords) - 1 - axis]):
            continue
        sure: list[int] = []
        for c in conds:
            least, terms = at_least(c.op, resolve(c.args[0]), resolve(c.args[1]))
            if _next(start, _plus(terms, live)):
                sure.append(least - at)
        if sure and max(sure) < run[1]:
            return Beyond(_head(start), axis, None)
    return None


def _asked(program: Program, s: Site, r: Ragged) -> bool:
    """Whether a branch around an access looks at the round or at the offsets: it may be the arm for whole tiles."""
    resolve = resolver_of(program, s.role.name)
    inside = s.path[s.path.index(r.loop) :]
    conds = [resolve(branch.cond) for branch, _ in s.branches() if branch in inside]
    return any((n.op == "ld" and n.attrs["tensor"] == r.offsets) or (n.op == "var" and n.attrs["name"] == r.loop.var) for c in conds for n in c.parts())


def _reach(program: Program, offsets: str, extent: int | str) -> bool:
    """Whether the offsets may be as large as the extent."""
    stated = declared_values(program, offsets)
    if stated is None or not isinstance(extent, str):
        return False
    constant, terms = linear(resolver_of(program, "")(stated.hi))
    name = linear(Expr("param", (), {"name": extent}))[1]
    return constant >= 1 and terms == name


def _masked(program: Program, s: Site, coords: tuple[Expr, ...], mask: Expr) -> Iterator[Beyond]:
    """How far the elements that a mask lets through reach behind the end of their sequence, by axis, where every part of the mask that counts them does."""
    ends = mask_ends(program, s)[0]
    loops = {f"?{x.var}": x for x in s.loops}
    resolve = resolver_of(program, s.role.name)
    for axis in sorted({k for k, _ in ends if k < len(coords)}):
        e = coords[axis]
        run = run_of(program, s.role.name, e) if isinstance(e.type, FragT) else (resolve(e), 1)
        if run is None:
            continue
        at, live = linear(run[0])
        found: list[Beyond] = []
        for _, passed in (x for x in ends if x[0] == axis):
            left, terms = linear(passed)
            constant, end = at + left, _plus(live, terms)
            more = {t: end.pop(t) for t in loops if t in end}
            start = {t: n for t, n in live.items() if "[" in t and t.partition("[")[0] == _head(end)}
            if not _next(start, end) or (constant <= 0 and not any(n > 0 for n in more.values())):
                found = []
                break
            moving = next((loops[t] for t, n in more.items() if n), None)
            found.append(Beyond(_head(start), axis, None if more else constant, defined(program, s.role.name, mask), moving or next((loops[t] for t in live if t in loops), None)))
        yield from found[:1]


__all__ = ["Beyond", "Ragged", "beyond_end", "steps_of"]

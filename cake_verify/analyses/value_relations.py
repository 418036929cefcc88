"""Masks that compare the positions of rows and columns, as a causal mask does: against where the rows and columns of a tile start, against
each other, and against the tiles that go without.

Where both run along one axis of the tensors, `lm.iota(x, axis=1, base=b) <= lm.iota(x, axis=0, base=a)` means the elements' own numbers only
if b - a is the distance of the two starts. What a role masks in one tile of two tensors' products it masks in all of them, up to the same
distance from the diagonal; a tile whose elements all pass needs no mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cake_ir.program import Expr, Op
from cake_ir.record import record
from cake_ir.types import FragT, ScalarT
from cake_verify.analyses.fragment_paths import offset
from cake_verify.analyses.labels import Label, moved
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_ends import end_of, follows_coordinates

if TYPE_CHECKING:
    from cake_verify.analyses.value_walk import ValueWalk

COMPARISONS = frozenset({"lt", "le", "gt", "ge"})
Compared = tuple[int, int, int, bool]
"""How far the base of the columns lies beyond that of the rows; 1 where columns may lie at most so far behind rows, -1 where at least;
how far, in elements of the tile; and whether the text says what is added to the positions."""

Masking = Callable[[Member, tuple[Any, ...]], tuple[Compared, ...]]

Key = tuple[str, str, str, str, int]
"""Role, axis, the tensors of rows and columns, and the side of the diagonal that is masked."""


@record(eq=False)
class Passed:
    """An operation under which columns up to `by` elements beyond their row pass, where it masks them (or, unmasked, reaches so far)."""

    by: int
    op: Op
    member: Member
    values: tuple[Any, ...]
    row: Label
    col: Label


def _compared(walk: ValueWalk, e: Expr, denied: bool = False) -> Masking | None:
    """Every comparison of columns with rows in a mask that lets pass what they all do; `denied`, in one that lets pass what is not under it."""
    if e.op == "not":
        return _compared(walk, e.args[0], not denied)
    if e.op == "var":
        name = str(e.attrs["name"])
        return None if denied else lambda m, v: walk.relations.get((m.number, name), ())
    if e.op in (("or", "bitor") if denied else ("and", "bitand")):
        parts = [d for a in e.args if (d := _compared(walk, a, denied)) is not None]
        return (lambda m, v: tuple(x for d in parts for x in d(m, v))) if parts else None
    if e.op not in COMPARISONS or len(e.args) != 2:
        return None
    one, other = (_place(walk, a) for a in e.args)
    if one is None or other is None:
        return None
    written = one[2] and other[2]
    strict, less = int((e.op in ("lt", "gt")) is not denied), (e.op in ("lt", "le")) is not denied

    def between(m: Member, v: tuple[Any, ...]) -> tuple[Compared, ...]:
        a, b = one[0](m, v), other[0](m, v)
        if a is None or b is None or {a[0], b[0]} != {0, 1}:
            return ()
        x, y = a[1] + one[1](m, v), b[1] + other[1](m, v)
        upper = less if a[0] == 1 else not less  # columns stand on the smaller side
        apart, by = (a[1] - b[1], y - x) if a[0] == 1 else (b[1] - a[1], x - y)
        return ((apart, 1, by - strict, written) if upper else (apart, -1, by + strict, written),)

    return between


def _place(walk: ValueWalk, e: Expr) -> tuple[Any, Any, bool] | None:
    """A position, what is added to it, and whether that is a number of the text."""
    if e.op in ("add", "sub") and len(e.args) == 2 and isinstance(e.args[1].type, ScalarT):
        inner = walk.bounds.position(e.args[0])
        if inner is None:
            return None
        by, sign = walk.bounds.scalar(e.args[1]), 1 if e.op == "add" else -1
        return inner, lambda m, v: sign * by(m, v), e.args[1].op == "const"
    found = walk.bounds.position(e)
    return None if found is None else (found, lambda m, v: 0, True)


def relations(walk: ValueWalk, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
    """What keeps the comparisons of a mask that is bound to a name, and the check of masks where they are used."""
    tree = walk.plan.code.ops[op.id].trees.get("value") if op.name == "compute" else None
    if tree is None:
        return None
    bound = _compared(walk, tree) if len(targets) == 1 else None
    uses = [(d, walk.plan.paths(kept).leaves, _endless(other), _shape(n)) for n in tree.parts() if n.op == "where" for kept, other, denied in _arms(n) if (d := _compared(walk, n.args[0], denied)) is not None]
    if bound is None and not uses:
        return None
    role = walk.plan.sites[op.id].role

    def step(m: Member, v: tuple[Any, ...]) -> None:
        if bound is not None:
            walk.relations[m.number, targets[0]] = bound(m, v)
        for compared, leaves, infinite, (rows, cols) in uses:
            found = compared(m, v)
            for leaf in leaves if found else ():
                if (leaf.row, leaf.col) != (0, 1):
                    continue
                row, col = walk.held(m, leaf, v)[:2]
                row, col = moved(row, offset(leaf.row_from, v)), moved(col, offset(leaf.col_from, v))
                if not row or not col:
                    continue
                if row[0] != col[0]:
                    if len({x[0] for x in found}) == 1 and follows_coordinates(walk, col):
                        _follow(walk, op, m, v, row, col, found[0][0] - col[1] + row[1])
                    continue
                apart = col[1] - row[1]
                if any([x[0] != apart and not _meant(walk, op, k, x, apart, col) for k, x in enumerate(found)]):
                    walk.related(op, m, v, row, col)
                for _, side, by, written in found if infinite else ():
                    seen = walk.diagonals.setdefault(_key(walk, role, row, col, side), {}).setdefault(op.id, {})
                    seen.setdefault(by + apart, Passed(by + apart, op, m, v, row, col))
                    if side > 0 and written:
                        far(walk, m, row, rows, col, cols)

    return step


def _meant(walk: ValueWalk, op: Op, k: int, x: Compared, apart: int, col: Label) -> bool:
    """Whether a base that is not where its tile starts is a bound of its own: the number behind a row's (`col < row + 1`), or the number in front of a row's window, as far away in all tiles."""
    misfit, reach = x[0] - apart, x[2] + apart
    if x[1] > 0:
        return abs(misfit) == 1 and reach == 0
    return misfit > 0 >= reach and walk.shifts.setdefault((op.id, k), (misfit, col))[0] == misfit


def _follow(walk: ValueWalk, op: Op, m: Member, v: tuple[Any, ...], row: Label, col: Label, shift: int) -> None:
    """Rows and columns along axes of their own: where position 0 lies is anybody's guess, but for one tile of rows it stays where it is."""
    assert row and col
    known, first = walk.shifts.setdefault((op.id, m.number, row, col[0], col[2]), (shift, col))
    if known != shift:
        walk.strays(op, m, v, first, col)


def _shape(e: Expr) -> tuple[int, int]:
    return (e.type.rows, e.type.cols) if isinstance(e.type, FragT) else (1, 1)


def far(walk: ValueWalk, m: Member, row: Label, rows: int, col: Label, cols: int) -> None:
    """Where the columns end that one tile of rows meets, under whatever mask; None where that is the axis's end."""
    assert row and col
    end = end_of(walk, m, col)
    ends = walk.ends.setdefault(_key(walk, m.role, row, col, 1), {})
    at = m.number, row[1] + rows
    if end is None or col[1] + cols >= end:
        ends[at] = None
    elif ends.get(at, 0) is not None:
        ends[at] = max(ends.get(at) or 0, col[1] + cols)


def _arms(n: Expr) -> tuple[tuple[Expr, Expr, bool], ...]:
    """The arm of a choice that a mask keeps, the other one, and whether the condition says what is not kept."""
    _, then, other = n.args
    return ((other, then, True),) if _endless(then) else ((then, other, False),)


def _endless(e: Expr) -> bool:
    return e.op == "const" and abs(float(e.attrs["value"])) == float("inf")  # type: ignore[arg-type]  # a number by its type


def _key(walk: ValueWalk, role: str, row: Label, col: Label, side: int) -> Key:
    assert row and col
    row_tensor, col_tensor = (str(walk.plan.program.ops[x[2]].attrs.get("tensor")) for x in (row, col))
    return role, row[0], row_tensor, col_tensor, side


def unmasked(walk: ValueWalk, op: Op, m: Member, v: tuple[Any, ...], row: Label, col: Label, rows: int, ends: tuple[int, int]) -> None:
    """A maximum runs over columns and no mask: how far beyond its row the last column lies, and the first one before the last row."""
    assert row and col
    for side, by in ((1, ends[1] - 1 - row[1]), (-1, col[1] - min(row[1] + rows, ends[0]) + 1)):
        key = _key(walk, m.role, row, col, side)
        old = walk.reached.get(key)
        if old is None or (by - old.by) * side > 0:
            walk.reached[key] = Passed(by, op, m, v, row, col)


def diagonals(walk: ValueWalk) -> Iterator[tuple[str, Passed, Passed]]:
    """What contradicts itself at the end of a run: two masks of the same products, or a tile that needs one and has none."""
    for key, by_op in walk.diagonals.items():
        if any(len(seen) > 1 for seen in by_op.values()):
            continue  # a window that differs by tile
        found = sorted((p for seen in by_op.values() for p in seen.values()), key=lambda p: p.by * key[4])
        if found[0].by != found[-1].by:
            yield "diagonals", found[-1], found[0]
            continue
        short = _short(walk.ends.get(key, {}))
        if short is not None and found[0].by > short:
            yield "short", found[0], Passed(short, found[0].op, found[0].member, found[0].values, found[0].row, found[0].col)
            continue
        open_ = walk.reached.get(key)
        if open_ is not None and (open_.by - found[0].by) * key[4] > 0:
            yield "unmasked", open_, found[0]


def _short(ends: dict[tuple[int, int], int | None]) -> int | None:
    """How far beyond the last row of their tile all columns end, the same for every tile of a member (of the member of which it is least).

    One tile whose columns end before its last row may be a part of what is split over several.
    """
    found: dict[int, list[int]] = {}
    for (member, last), end in ends.items():
        if end is not None:
            found.setdefault(member, []).append(end - last)
    known = [by[0] for by in found.values() if (len(by) > 1 or by[0] >= 0) and len(set(by)) == 1]
    return min(known) if known and len(known) == len(found) else None


__all__ = ["COMPARISONS", "Passed", "diagonals", "far", "relations", "unmasked"]

"""Which scales a product took for which elements, over one run: an operand's block scales have to move with the operand.

Scales lie in tensors of their own, whose axes count other things than those of the elements: words of four blocks along K, atoms of 128 rows.
So nothing is known of one product by itself. Over a run the places that scales came from follow from those of their elements: other rows have
other scales; within one accumulation each word of K further on moves the scales by the same amount; and places count from where elements do.
A tensor that has one place along an axis may serve all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from cake_ir.ops.scales import ATOM_ROWS, WORD
from cake_ir.program import Expr, Op
from cake_ir.record import record
from cake_ir.types import FragT, ViewT
from cake_verify.analyses.labels import Label, Tile
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.runs import run_of
from cake_verify.analyses.state import Member
from cake_verify.analyses.trips import linear, resolver_of
from cake_verify.analyses.value_state import Clash

Vector = tuple[int, ...]
Place = tuple[int, Vector]
"""Where scales come from: the load and the coordinates (innermost first) of their first element."""
Word = tuple[int, int, Place | None]
"""One word of scales of a product: rows and elements of K by which what it scales lies behind the operand's first, and its place."""


@record()
class Use:
    """One word of scales as one product took it: for elements from (`row`, `k`) on, the last of `row` the number, in accumulation `sum`."""

    sum: Any
    row: tuple[Any, ...]
    k: int
    at: Vector
    member: Member
    values: tuple[Any, ...]


@record(eq=False)
class ScaleClash(Clash):
    """Scales that are not those of the elements of operand `name`.

    `why`: `same` (other elements, the same scales), `apart` (they move by another amount), `slice` (another part of a word), `shift-k` and
    `shift-rows` (a constant amount), `rows` (of other rows), `crossed` (in another order than
    rows), `other` (of the other operand); `axis` counts the coordinates of `load`, `unit` the elements to one step along it.
    """

    name: str = ""
    why: str = ""
    load: int = -1
    uses: tuple[Use, ...] = ()
    unit: int = 0


def place_of(plan: Plan, load: int | None, contents: Any, row: int, col: int) -> Place | None:
    """Where the part of a view from (row, col) on, filled with `contents`, was loaded from; None where that is not known."""
    if load is None or plan.program.ops[load].attrs.get("box") is not None:
        return None
    _, coords, at = contents
    if not all(isinstance(c, int) for c in coords):
        return None
    by = (col - at[1], row - at[0])
    view = plan.program.ops[load].operands.get("view")
    if len(coords) == 1 and isinstance(view, Expr) and isinstance(view.type, ViewT):
        return load, (coords[0] + by[0] + by[1] * view.type.cols,)
    return load, tuple(c + (by[i] if i < 2 else 0) for i, c in enumerate(coords))


@dataclass(slots=True)
class Scales:
    """The scales of one operand of one product: how to find their words, the number of the first one, and every use so far."""

    plan: Plan
    args: dict[str, Any]
    op: Op
    name: str
    block: int
    words: Callable[[Member, tuple[Any, ...]], Iterable[Word]]
    first: Callable[[tuple[Any, ...]], int]
    labels: Callable[[Member, tuple[Any, ...]], Tile] | None = None
    uses: dict[int, list[Use]] = field(default_factory=dict)
    odd: ScaleClash | None = None

    @property
    def span(self) -> int:
        """Elements of K under one word."""
        return self.block * WORD

    def used(self, m: Member, v: tuple[Any, ...], total: Any, tile: Tile, which: Any) -> None:
        """A product takes the scales of an operand whose labels and contents are known."""
        row, k = tile[0], tile[1]
        if not row or not k:
            return
        outer = _outer_of(which)
        if self.labels is not None:
            self._of_rows(m, v, row, self.labels(m, v)[0])
        start = k[1] - self.block * self.first(v)
        for rows, further, place in self.words(m, v):
            if place is not None:
                self.uses.setdefault(place[0], []).append(Use((total, rows), (*outer, row[1] + rows), start + further, place[1], m, v))

    def _of_rows(self, m: Member, v: tuple[Any, ...], mine: Label, theirs: Label) -> None:
        """Scales whose own rows are known, beside the rows of the operand."""
        if self.odd is None and mine and theirs and mine[0] == theirs[0] and mine[1] != theirs[1]:
            self.odd = ScaleClash("scales", self.op, m, v, 0, mine, theirs, name=self.name, why="rows", load=theirs[2])

    def judged(self, other: Scales) -> ScaleClash | None:
        """What does not fit over the whole run; `other` are the scales of the product's other operand."""
        if self.odd is not None:
            return self.odd
        for load, uses in self.uses.items():
            found = self._along(load, uses) or self._across(load, uses)
            if found is None:
                continue
            theirs = [u for group in other.uses.values() for u in group]
            if found.why in ("rows", "crossed", "shift-rows") and len(theirs) == len(uses):
                as_other = [replace(u, row=w.row, k=w.k) for u, w in zip(uses, theirs, strict=True)]
                if (self._along(load, as_other) or self._across(load, as_other)) is None:
                    return self._clash("other", load, found.axis, *found.uses)
            return found
        return None

    def _clash(self, why: str, load: int, axis: int, *uses: Use, unit: int = 0) -> ScaleClash:
        last = uses[-1]
        return ScaleClash("scales", self.op, last.member, last.values, axis, name=self.name, why=why, load=load, uses=uses, unit=unit)

    def _still(self, load: int, uses: list[Use]) -> list[int]:
        """The axes that a load has one element of and never moves along, although the tensor has more there; the outermost first."""
        op = self.plan.program.ops[load]
        tensor, view = self.plan.program.tensors[str(op.attrs["tensor"])], op.operands.get("view")
        inner = 2 if isinstance(view, Expr) and isinstance(view.type, ViewT) and view.type.rows > 1 else 1
        sizes = [e if isinstance(e, int) else int(self.args.get(e, 1)) for e in reversed(tensor.extents)]
        return [i for i in range(len(sizes) - 1, inner - 1, -1) if sizes[i] > 1 and len({u.at[i] for u in uses}) == 1]

    def _along(self, load: int, uses: list[Use]) -> ScaleClash | None:
        """Within one accumulation each word of K has its own scales, in steps of one size from the first element on."""
        sums: dict[Any, list[Use]] = {}
        for u in uses:
            sums.setdefault(u.sum, []).append(u)
        still = self._still(load, uses)
        step: Vector | None = None
        spare = self._spare(load, uses)
        for group in sums.values():
            if not still and not spare and len({u.at for u in group}) == 1:
                continue  # one word of each row serves all of K
            for one, other in pairwise(group):
                by, moved = other.k - one.k, tuple(b - a for a, b in zip(one.at, other.at, strict=True))
                if by % self.span:
                    return self._clash("slice", load, _outer(moved), one, other)
                if by and not any(moved):
                    return self._clash("same", load, still[-1] if still else 0, one, other, unit=self.span)
                words = by // self.span
                if step is None and words:
                    step = tuple(x // words for x in moved)
                if moved != tuple(x * words for x in step or moved):
                    return self._clash("apart", load, _outer(moved), one, other, unit=self.span)
        axes = [i for i, x in enumerate(step or ()) if x]
        if step is None or len(axes) != 1:
            return None
        stretch: dict[Any, Use] = {}
        for u in uses:
            before = stretch.setdefault((u.at, u.row), u)
            if before.k != u.k:
                return self._clash("same", load, axes[0], before, u, unit=self.span)
        (axis,) = axes
        rows = self._rows(uses, axis)
        if rows is None:
            if len(step) == 1 or uses[0].row[-1]:
                return None  # one axis may count rows, too, and where these are others than the first, that is where it counts from
        elif rows[1]:  # along one axis rows are counted, too: what is left of a place when both are taken away
            left = {u.at[axis] * self.span * rows[0] - u.k * step[axis] * rows[0] - u.row[-1] * rows[1] * self.span for u in uses}
            return self._clash("shift-k", load, axis, uses[0]) if len(left) == 1 and left != {0} else None
        return self._shifted("shift-k", load, axis, self.span, step[axis], [(u, u.k) for u in uses])

    def _rows(self, uses: list[Use], axis: int = 0) -> tuple[int, int] | None:
        """By how many rows two uses at one place of K lie apart, and by how many places along an axis."""
        one = uses[0]
        other = next((u for u in uses if u.k == one.k and u.row[:-1] == one.row[:-1] and u.row != one.row), None)
        return None if other is None else (other.row[-1] - one.row[-1], other.at[axis] - one.at[axis])

    def _spare(self, load: int, uses: list[Use]) -> bool:
        """Whether a tensor has room for more than one atom between those of neighbouring rows, along the one axis that counts its lines."""
        if len(uses[0].at) > 2:
            return False
        axis = len(uses[0].at) - 1
        rows = self._rows(uses, axis)
        line = self.plan.program.tensors[str(self.plan.program.ops[load].attrs["tensor"])].extents[-1:] if axis else (1,)
        return rows is not None and bool(line) and isinstance(line[0], int) and abs(rows[1]) * line[0] > abs(rows[0]) * WORD

    def _beyond(self, load: int, uses: list[Use]) -> bool:
        """Whether a tensor of one axis goes on behind all places that were used."""
        tensor = self.plan.program.tensors[str(self.plan.program.ops[load].attrs["tensor"])]
        if len(uses[0].at) > 1 or len(tensor.extents) != 1:
            return False
        size = tensor.extents[0]
        return (size if isinstance(size, int) else int(self.args.get(size, 1))) > max(u.at[0] for u in uses) + ATOM_ROWS * WORD

    def _across(self, load: int, uses: list[Use]) -> ScaleClash | None:
        """Over all accumulations: the same rows have the same scales and others have others, from row 0 on."""
        by_row: dict[Any, Use] = {}
        by_place: dict[Any, Use] = {}
        still = self._still(load, uses)
        first = {u.k: u.at for u in reversed(uses)}
        moving = any(u.at != first[u.k] for u in uses)
        for u in uses:
            before = by_row.setdefault((u.row, u.k), u)
            if before.at != u.at:
                return self._clash("rows", load, _outer(tuple(b - a for a, b in zip(before.at, u.at, strict=True))), before, u)
            twin = by_place.setdefault((u.at, u.k), u)
            if twin.row != u.row and (still or (moving and twin.sum[0] == u.sum[0]) or self._beyond(load, uses)):
                return self._clash("rows", load, still[0] if still else len(u.at) - 1, twin, u)
        lines: dict[Any, list[Use]] = {}
        for u in uses:
            lines.setdefault((u.k, u.row[:-1]), []).append(u)
        for line in lines.values():
            for before, u in pairwise(sorted(line, key=lambda u: u.row)):
                back = [i for i, (a, b) in enumerate(zip(before.at, u.at, strict=True)) if b < a]
                if back:
                    return self._clash("crossed", load, back[-1], before, u)
        one = uses[0]
        other = next((u for u in uses if u.k == one.k and u.row[:-1] == one.row[:-1] and u.row != one.row), None)
        moved = [i for i, (a, b) in enumerate(zip(one.at, other.at, strict=True)) if a != b] if other is not None else []
        if other is None or len(moved) != 1:
            return None
        (axis,) = moved
        if one.k and all(u.k == one.k for u in uses):
            return None  # the axis may count words of K, too
        return self._shifted("shift-rows", load, axis, other.row[-1] - one.row[-1], other.at[axis] - one.at[axis], [(u, u.row[-1]) for u in uses])

    def _second_part(self, load: int, axis: int) -> bool:
        """Whether an argument says where these scales start: those of the second of two matrices behind those of the first."""
        coords, role = self.plan.program.ops[load].operands.get("coords"), self.plan.sites[load].role
        e = coords[axis] if isinstance(coords, tuple) and axis < len(coords) else None
        run = None if e is None else run_of(self.plan.program, role, e) if isinstance(e.type, FragT) else (resolver_of(self.plan.program, role)(e), 1)
        return run is not None and any(t in self.plan.program.scalars for t in linear(run[0])[1])

    def _shifted(self, why: str, load: int, axis: int, elements: int, places: int, uses: list[tuple[Use, int]]) -> ScaleClash | None:
        """Places that count from somewhere else than the elements, all by the same amount."""
        starts = {u.at[axis] * elements - at * places for u, at in uses}
        if len(starts) != 1 or starts == {0} or self._second_part(load, axis):
            return None
        return self._clash(why, load, axis, uses[0][0], unit=elements // places if elements % places == 0 else 0)


def _outer_of(which: Any) -> tuple[int, ...]:
    """The coordinates, all but the two innermost, from which an operand's contents were loaded; none where that is not known."""
    x = which[0] if isinstance(which, tuple) and which else None
    while isinstance(x, tuple) and x and isinstance(x[0], tuple):
        x = x[0]
    return x[1][2:] if isinstance(x, tuple) and len(x) == 3 and isinstance(x[1], tuple) else ()


def _outer(moved: Vector) -> int:
    """The outermost coordinate that differs."""
    return max((i for i, x in enumerate(moved) if x), default=0)


__all__ = ["Place", "ScaleClash", "Scales", "Use", "Word", "place_of"]

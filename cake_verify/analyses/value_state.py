"""What is known of values while a run is walked: labels of bytes and fragments, and how each kind of operand gives or takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cake_ir.program import Expr, Op
from cake_ir.record import record
from cake_ir.types import FragT, ViewT
from cake_verify.analyses.fragment_paths import ZERO, Leaf, Paths, offset
from cake_verify.analyses.labels import (
    CONSTANT,
    NO_PRODUCT,
    NOTHING,
    UNKNOWN,
    Axes,
    Label,
    Tile,
    join,
    moved,
)
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_apart import mixed
from cake_verify.analyses.value_bounds import Bounds
from cake_verify.analyses.value_feeding import Place, Selection, sources_of
from cake_verify.analyses.value_relations import Compared, Passed
from cake_verify.analyses.value_relations import Key as Side

if TYPE_CHECKING:
    from cake_verify.analyses.value_scales import Scales

Event = tuple[Member, tuple[Any, ...]]
Handler = Callable[[Member, tuple[Any, ...]], None]
Cell = tuple[str, Label, Label, Axes, Any, int, int]
"""What some bytes hold: the view that they were written through, labels at its origin, axes of products, what tells the contents apart
(for a copy its tensor and coordinates, else the number of the write), the operation that wrote and the slot count for which it did."""


@record(eq=False)
class Clash:
    """Two things that do not fit (`sure` is False where that may be meant, as in a copy that rearranges): `kind` is `contraction`, `transposed`, `stored`, `added`, `stale`, `mask` or `twice`; labels of both sides."""

    kind: str
    op: Op
    member: Member
    values: tuple[Any, ...]
    axis: int = 0
    one: Label = UNKNOWN
    other: Label = UNKNOWN
    sure: bool = True
    passed: tuple[Passed, Passed] | None = None


@dataclass(slots=True, eq=False)
class Sum:
    """What has been summed in one accumulator: the last product's operation until somebody reads it, whose it is and how many there were, the
    operands of all of them, and a number for what it has summed since it began."""

    unread: int = -1
    member: int = 0
    count: int = 0
    parts: set[Any] = field(default_factory=set)
    read: bool = False
    begun: int = 0


Key = tuple[tuple[str, int] | None, str, int, int]
"""How to find the place that a leaf reads: itself, or where an element is chosen at run time None, the array's name, where among the
event's values its number stands, and how many elements there are."""

_NONE: dict[Any, Tile] = {}
_EMPTY: dict[int, Cell] = {}

Beside = tuple[Any, Any, Member, tuple[Any, ...]]
"""Labels of a product and of what is combined with it along an axis of its own, and the event."""

Operand = Callable[[Member, tuple[Any, ...]], tuple[Tile, Any]]
"""The labels of an operand, and what tells its contents from others."""


def keys_of(leaves: Iterable[Leaf]) -> list[Key]:
    """The places that leaves read."""
    return [((leaf.name, leaf.at % leaf.stages) if leaf.stages == 1 or leaf.slot is None else None, leaf.name, leaf.slot or 0, leaf.stages) for leaf in leaves]


class ValueState:
    """State of one walk, and handlers for loads, stores and what feeds them."""

    bounds: Bounds

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.clashes: list[Clash] = []
        self.added: set[tuple[int, int, int, int]] = set()
        self.made: dict[int, int] = {}
        self.lost: dict[int, int] = {}
        self.updated: dict[tuple[int, Any], int] = {}
        self.clobbered: dict[int, dict[int, int]] = {}
        self.shares: dict[tuple[int, int], list[int]] = {}
        self.covered: dict[tuple[str, str, str], set[tuple[int, int]]] = {}
        self.workers: dict[tuple[str, str, str], set[int]] = {}
        self._cells: dict[int, dict[int, Cell]] = {}
        self._frags: dict[int, dict[Any, Tile]] = {}
        self._versions: dict[tuple[int, Any], Any] = {}
        self._sums: dict[tuple[int, Any], Sum] = {}
        self._clock = 0
        self.relations: dict[tuple[int, str], tuple[Compared, ...]] = {}
        self.shifts: dict[tuple[Any, ...], tuple[int, Label]] = {}
        self.diagonals: dict[Side, dict[int, dict[int, Passed]]] = {}
        self.reached: dict[Side, Passed] = {}
        self.beside: dict[tuple[int, int, str, str], dict[tuple[int, int], list[Beside]]] = {}
        self.distances: dict[tuple[int, int, int, str, str], dict[int, Beside]] = {}
        self.together: set[tuple[int, int, int]] = set()
        self.ends: dict[Side, dict[tuple[int, int], int | None]] = {}
        self.kept: set[tuple[int, str]] = set()
        self.taken: frozenset[Place] | None = None
        self.selections: dict[int, list[Selection]] = {}
        self.summed: frozenset[Place] | None = None
        self.dividers: dict[tuple[str, int], str | None] = {}
        self.selecting: set[str] | None = None
        self.numbers: dict[tuple[int, str], dict[Any, Any]] = {}
        self.parts: dict[tuple[int, str], frozenset[tuple[str, int, int, int]]] = {}
        self.reduced: dict[tuple[str, str, str, str], set[tuple[str, int, int, int]]] = {}
        self.rows_of: dict[tuple[int, str], tuple[Label, Label]] = {}
        self.moves: dict[tuple[int, int], dict[int, set[int]]] = {}
        self.args: dict[str, Any] = {}
        self.loaded: dict[Any, int] = {}
        self.scaled: list[Scales] = []

    @cached_property
    def sources(self) -> dict[Place, set[str]]:
        """By place the names that it is computed from."""
        return sources_of(self.plan)

    @cached_property
    def followed(self) -> frozenset[str]:
        """Names of places that products add to, or that are computed from themselves: of others nobody asks whether they were read."""
        trees = (self.plan.code.ops[s.op.id].trees.get("acc") for s in self.plan.sites.values() if s.op.name == "mma")
        added = {leaf.name for tree in trees if tree is not None for leaf in self.plan.paths(tree).leaves}
        return frozenset(added.union([name for (_, name), read in self.sources.items() if name in read]))

    def _fresh(self) -> int:
        """A number that nothing else has."""
        self._clock += 1
        return self._clock

    def _lose(self, total: Sum) -> None:
        if total.unread >= 0:
            self.lost[total.unread] = self.lost.get(total.unread, 0) + 1
            self.shares[total.unread, total.member][1] += total.count
            total.unread = -1
        total.count = 0

    def _set(self, m: Member, keys: Iterable[Any], tile: Tile, contents: Any = None) -> None:
        """New contents of some places of a member."""
        number, versions, clock = m.number, self._versions, self._clock
        mine = self._frags.setdefault(number, {})
        for key in keys:
            mine[key] = tile
            clock += 1
            versions[number, key] = contents or clock
        self._clock = clock

    def _trees(self, op: Op) -> list[Paths]:
        return [self.plan.paths(t) for t in self.plan.code.ops[op.id].trees.values()]

    def _at(self, op: Op, operand: str) -> int:
        return self.plan.code.ops[op.id].index[operand]

    def _read_only(self, op: Op) -> Handler | None:
        """An operation of which only matters what it reads."""
        keys = keys_of(leaf for p in self._trees(op) for leaf in p.leaves if leaf.name in self.followed)
        if not keys:
            return None
        return lambda m, v: self._reads(m, v, keys)

    def _reads(self, m: Member, v: tuple[Any, ...], keys: Iterable[Key]) -> None:
        number, updated, sums = m.number, self.updated, self._sums
        for fixed, name, slot, stages in keys:
            key = (number, fixed or (name, v[slot] % stages))
            if key in updated:
                del updated[key]
            total = sums.get(key)
            if total is not None:
                total.unread, total.read, total.count = -1, True, 0

    # ------------------------------------------------------------ sources of labels

    def _from_tree(self, op: Op, operand: str, own: Iterable[str] = ()) -> Callable[[Member, tuple[Any, ...]], Tile]:
        tree = self.plan.code.ops[op.id].trees.get(operand)
        if tree is None:
            return lambda m, v: CONSTANT
        p = self.plan.paths(tree)
        used = keys_of(leaf for leaf in p.leaves if leaf.name not in own and leaf.name in self.followed)
        keys = keys_of(p.leaves)
        from_ = lambda o: o if o != ZERO else None  # noqa: E731 - most places are read from their start
        sides = [(leaf.row, from_(leaf.row_from), leaf.col, from_(leaf.col_from)) for leaf in p.leaves]
        start: Label = UNKNOWN if p.opaque else None
        if len(keys) == 1 and keys[0][0] is not None and sides[0][1] is None and sides[0][3] is None:  # one place, whole: the usual thing
            (only, *_), (row_side, _, col_side, _), opaque = keys[0], sides[0], p.opaque

            def copied(m: Member, v: tuple[Any, ...]) -> Tile:
                if used and (self._sums or self.updated):
                    self._reads(m, v, used)
                tile = self._frags.get(m.number, _NONE).get(only, NOTHING)
                if opaque:
                    return UNKNOWN, UNKNOWN, tile[2]
                return (None if row_side is None else tile[row_side], None if col_side is None else tile[col_side], tile[2])  # type: ignore[return-value]  # 0 or 1: labels

            return copied

        def read(m: Member, v: tuple[Any, ...]) -> Tile:
            mine = self._frags.get(m.number, _NONE)
            if used and (self._sums or self.updated):
                self._reads(m, v, used)
            row = col = start
            tiles = [mine.get(fixed or (name, v[slot] % stages), NOTHING) for fixed, name, slot, stages in keys]
            product = NO_PRODUCT
            for tile in tiles:
                if tile[2]:
                    product |= tile[2]
            for (row_side, row_from, col_side, col_from), tile in zip(sides, tiles, strict=True):
                label: Any  # of an axis: what stands at 0 or 1 of a tile
                if row_side is not None:
                    label = tile[row_side] if row_from is None else moved(tile[row_side], offset(row_from, v))  # type: ignore[arg-type]  # 0 or 1: a label
                    if row is None:
                        row = label
                    elif label is not row:
                        old, row = row, join(row, label)
                        if old and label:
                            if row == UNKNOWN:
                                row = mixed(self, op, m, v, 0, old, label, product)
                            elif not product:
                                self.together.add((op.id, m.number, 0))
                if col_side is not None:
                    label = tile[col_side] if col_from is None else moved(tile[col_side], offset(col_from, v))  # type: ignore[arg-type]  # 0 or 1: a label
                    if col is None:
                        col = label
                    elif label is not col:
                        old, col = col, join(col, label)
                        if old and label:
                            if col == UNKNOWN:
                                col = mixed(self, op, m, v, 1, old, label, product)
                            elif not product:
                                self.together.add((op.id, m.number, 1))
            return row, col, product

        return read

    def clash(self, kind: str, op: Op, m: Member, v: tuple[Any, ...], axis: int, one: Label, other: Label, sure: bool = True) -> None:
        if len(self.clashes) < 64:
            self.clashes.append(Clash(kind, op, m, v, axis, one, other, sure))

    def held(self, m: Member, leaf: Leaf, v: tuple[Any, ...]) -> Tile:
        """The labels of a place that an expression reads."""
        ((fixed, name, slot, stages),) = keys_of((leaf,))
        return self._frags.get(m.number, _NONE).get(fixed or (name, v[slot] % stages), NOTHING)

    def labels_of(self, m: Member, name: str) -> Tile:
        """The labels of a place that is no array."""
        return self._frags.get(m.number, _NONE).get((name, 0), NOTHING)

    def origin(self, m: Member, atom: int, view: str) -> Label:
        """What the first row of the view whose bytes these are was loaded for."""
        cell = self._cells.get(m.cta.rank, {}).get(atom)
        return cell[1] if cell is not None and cell[0] == view else UNKNOWN

    def cell(self, m: Member, atom: int) -> Cell | None:
        """What some bytes of a member's CTA hold."""
        return self._cells.get(m.cta.rank, _EMPTY).get(atom)

    def covered_over(self, op: Op, m: Member, v: tuple[Any, ...], view: str, by: int) -> None:
        """Bytes that are read once more have been written through another view since."""
        self.clash("covered", op, m, v, 0, (view, 0, op.id), ("", 0, by))

    def masked(self, op: Op, m: Member, v: tuple[Any, ...], label: Label) -> None:
        """A mask lets one element through that was filled in."""
        self.clash("mask", op, m, v, 1, label, label)

    def filled(self, op: Op, m: Member, v: tuple[Any, ...], label: Label) -> None:
        """A selection takes what was filled in for elements."""
        self.clash("filled", op, m, v, 1, label, label)

    def behind(self, op: Op, m: Member, v: tuple[Any, ...], row: Label) -> None:
        """A running value takes in a row of the next sequence."""
        self.clash("behind", op, m, v, 0, row, row)

    def related(self, op: Op, m: Member, v: tuple[Any, ...], row: Label, col: Label) -> None:
        """A mask compares positions that are not those of the rows and columns."""
        self.clash("related", op, m, v, 0, row, col)

    def strays(self, op: Op, m: Member, v: tuple[Any, ...], one: Label, other: Label) -> None:
        """The base of a mask's columns does not follow the tile from which they come."""
        self.clash("strays", op, m, v, 1, one, other)

    def elsewhere(self, op: Op, axis: int, at: Beside) -> None:
        """What a product is combined with lies at another distance from it than for other members, or whole tiles away."""
        self.clash("beside", op, at[2], at[3], axis, at[0], at[1])

    def off_diagonal(self, kind: str, wide: Passed, narrow: Passed) -> None:
        """One tile's mask lets columns pass that another tile's does not, or a tile has none."""
        self.clashes.append(Clash(kind, wide.op, wide.member, wide.values, 1, wide.col, wide.row, True, (wide, narrow)))

    def numbered(self, op: Op, m: Member, v: tuple[Any, ...], one: Label, other: Label) -> None:
        """Columns of two tiles get the same numbers."""
        self.clash("numbered", op, m, v, 1, one, other)

    def uneven(self, c: Clash) -> bool:
        """Whether a store moves by different distances what different loads have brought, or adds elsewhere what it adds to its own place, too: then one brings another tile."""
        found = self.moves.get((c.op.id, c.axis), {}) if c.kind == "stored" else {}
        twice = c.op.attrs.get("op") == "add" and any(0 in by and len(by) > 1 for by in found.values())
        return twice or (len(found) > 1 and len({self.plan.program.ops[n].attrs.get("tensor") for n in found}) == 1 and all(len(by) == 1 for by in found.values()) and len(set.union(*found.values())) > 1)

    def _outdated(self, op: Op, m: Member, v: tuple[Any, ...], slot: int, cell: Cell) -> None:
        """A part of what is read was brought for an earlier use of the slot, by a copy that fills slots again and again."""
        if cell[5] in self.plan.set_of or self.plan.program.ops[cell[5]].name == "cp_async":
            self.clash("outdated", op, m, v, 0, ("", cell[6], cell[5]), ("", slot, op.id))

    def _from_view(self, op: Op, operand: str) -> Callable[[Member, tuple[Any, ...]], Tile]:
        """The labels of a rectangle as it is read, transposition applied; constants of the view's origin are added."""
        e = op.operands[operand]
        assert isinstance(e, Expr) and isinstance(e.type, ViewT)
        atoms, at, t = self.plan.lookup(op, operand), self._at(op, operand), e.type

        def read(m: Member, v: tuple[Any, ...]) -> Tile:
            cells, place = self._cells.get(m.cta.rank, _EMPTY), v[at]
            region = atoms[place]
            first = cells.get(region[0])
            if first is None or first[0] != t.view:
                return NOTHING
            row, col = first[1], first[2]
            for a in region[1:]:
                other = cells.get(a)
                if other is first:  # of one write, as mostly
                    continue
                if other is None or other[0] != t.view:
                    return NOTHING
                if other[6] != first[6] and place[0] == max(first[6], other[6]):
                    self._outdated(op, m, v, place[0], first if first[6] < other[6] else other)
                row, col = join(row, other[1]), join(col, other[2])
            if place[1] or place[2]:
                row, col = moved(row, place[1]), moved(col, place[2])
            return (col, row, first[3]) if t.transposed else (row, col, first[3])

        return read

    def _parts_of_view(self, op: Op) -> Callable[[Member, tuple[Any, ...]], Iterable[Tile]]:
        """The labels of each differently written part of a view, all told at the origin of the rectangle."""
        e = op.operands["view"]
        assert isinstance(e, Expr) and isinstance(e.type, ViewT)
        atoms, at, t = self.plan.lookup(op, "view"), self._at(op, "view"), e.type

        def read(m: Member, v: tuple[Any, ...]) -> Iterable[Tile]:
            cells = self._cells.get(m.cta.rank, {})
            found = {c[4]: c for a in atoms[v[at]] if (c := cells.get(a)) is not None and c[0] == t.view}
            for c in found.values():
                row, col = moved(c[1], v[at][1]), moved(c[2], v[at][2])
                yield (col, row, c[3]) if t.transposed else (row, col, c[3])

        return read

    def _view_operand(self, op: Op, operand: str) -> Operand:
        """The labels of an operand in shared memory, and what tells its contents from others: the write that filled it, which part it is, and which way round."""
        e = op.operands[operand]
        assert isinstance(e, Expr) and isinstance(e.type, ViewT)
        labels, atoms, at, view = self._from_view(op, operand), self.plan.lookup(op, operand), self._at(op, operand), e.type.view
        turned = e.type.transposed

        def both(m: Member, v: tuple[Any, ...]) -> tuple[Tile, Any]:
            place = v[at]
            region, cells = atoms[place], self._cells.get(m.cta.rank, _EMPTY)
            cell = cells.get(region[0])
            if cell is None:
                return NOTHING, None
            filled = cell[4] if isinstance(cell[4], tuple) else (region[0], cell[4])
            which = (filled, "turned") if turned else filled, place[1], place[2]
            if len(region) > 1 or cell[0] != view:
                return labels(m, v), which
            row, col = cell[1], cell[2]
            if place[1] or place[2]:
                row, col = moved(row, place[1]), moved(col, place[2])
            return ((col, row, cell[3]) if turned else (row, col, cell[3])), which

        return both

    def _shaped(self, op: Op, source: Callable[[Member, tuple[Any, ...]], Tile]) -> Callable[[Member, tuple[Any, ...]], Tile]:
        """A load from a view into a fragment; a row vector of a 1-D view runs along the view's columns."""
        t = op.type
        view = op.operands["view"]
        assert isinstance(view, Expr) and isinstance(view.type, ViewT)
        if isinstance(t, FragT) and t.form == "rowvec" and view.type.rank == 1:
            return lambda m, v: (lambda tile: (tile[1], None, tile[2]))(source(m, v))
        return source


__all__ = ["Clash", "Event", "Handler", "Sum", "ValueState"]

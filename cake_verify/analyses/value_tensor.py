"""What is known of values in tensor memory while a run is walked: fragments written there, operands and results read there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from cake_ir.derive.pairs import of_pair
from cake_ir.ops.scales import ATOM, ATOM_ROWS, WORD, atoms, first_of
from cake_ir.program import Expr, Op
from cake_ir.types import ScalesT, TmemT, ViewT
from cake_verify.analyses.labels import NOTHING, UNKNOWN, Tile, moved
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_memory import MemoryValues
from cake_verify.analyses.value_scales import Place, Scales, Word, place_of
from cake_verify.analyses.value_state import Handler, Operand, keys_of


class TensorValues(MemoryValues):
    """The handlers of tensor memory; cells are columns, labels stand at the region's first one."""

    def _tmem_operand(self, op: Op, operand: str) -> Operand:
        """The same of an operand in tensor memory."""
        e = op.operands[operand]
        assert isinstance(e, Expr) and isinstance(e.type, TmemT)
        atoms, at, name = self.plan.columns(e.type), self._at(op, operand), e.type.tmem

        def both(m: Member, v: tuple[Any, ...]) -> tuple[Tile, Any]:
            cells, region = self._cells.get(m.cta.rank, {}), atoms[v[at]]
            found = [cells.get(a) for a in region]
            first = found[0] if found else None
            if first is None:
                return NOTHING, None
            which = (region[0], first[4], v[at])
            if any(c is None or c[0] != name or c[4] != first[4] for c in found):
                return NOTHING, which
            return (first[1], moved(first[2], v[at]), first[3]), which

        return both

    def _put_columns(self, op: Op) -> Handler:
        """A fragment written to tensor memory."""
        e = op.operands["t"]
        assert isinstance(e, Expr) and isinstance(e.type, TmemT)
        atoms, at, name, source = self.plan.columns(e.type), self._at(op, "t"), e.type.tmem, self._from_tree(op, "x")

        def put(m: Member, v: tuple[Any, ...]) -> None:
            row, col, product = source(m, v)
            self._fill(m, atoms[v[at]], name, (0, 0, v[at]), row, col, product, (m.cta.rank,), op.id)

        return put

    def _copy_columns(self, op: Op) -> Handler:
        """A part of a view copied to tensor memory; where 32 rows go to each quarter of the lanes no lane says which row it is."""
        e, view = op.operands["t"], op.operands["view"]
        assert isinstance(e, Expr) and isinstance(e.type, TmemT) and isinstance(view, Expr) and isinstance(view.type, ViewT)
        atoms, at, name, source = self.plan.columns(e.type), self._at(op, "t"), e.type.tmem, self._from_view(op, "view")
        whole, from_, where = view.type.shape[0] == e.type.lanes, self.plan.lookup(op, "view"), self._at(op, "view")
        paired = of_pair(self.plan.program, op)

        def put(m: Member, v: tuple[Any, ...]) -> None:
            row, col, product = source(m, v)
            cell = None if whole else self._cells.get(m.cta.rank, {}).get(from_[v[where]][0])
            contents = None if cell is None else (cell[4], v[where][1], v[where][2])
            self._fill(m, atoms[v[at]], name, (0, 0, v[at]), row if whole else UNKNOWN, col, product, (m.cta.rank,), op.id, contents)

        def of_both(m: Member, v: tuple[Any, ...]) -> None:
            for end in ends_of(m):
                put(end, v)

        return of_both if paired else put

    # ------------------------------------------------------------ scales

    def _scales(self, op: Op, name: str) -> Scales:
        """What is known of an operand's block scales."""
        e = op.operands[name]
        assert isinstance(e, Expr) and isinstance(e.type, ScalesT)
        if isinstance(e.type.source, TmemT):
            return self._scales_in_columns(op, name, e.type, e.type.source)
        tree = self.plan.code.ops[op.id].trees[name]
        (key,) = keys_of(self.plan.paths(tree).leaves)
        start = first_of(tree)
        number = int(start.attrs["i"]) if start.op == "dyn" else -1  # type: ignore[call-overload]  # positions are integers
        fixed = 0 if number >= 0 else int(start.attrs["value"])  # type: ignore[call-overload]  # a number by its kind

        def words(m: Member, v: tuple[Any, ...]) -> Iterator[Word]:
            place = key[0] or (key[1], v[key[2]] % key[3])
            yield 0, 0, self._place(self._versions.get((m.number, place)))

        return Scales(self.plan, self.args, op, name, e.type.block, words, lambda v: v[number] if number >= 0 else fixed, self._from_tree(op, name))

    def _place(self, contents: Any) -> Place | None:
        """Where the part of a view that a fragment or some columns hold was loaded from."""
        return place_of(self.plan, self.loaded.get(contents[0]), *contents) if isinstance(contents, tuple) and len(contents) == 3 else None

    def _scales_in_columns(self, op: Op, name: str, t: ScalesT, region: TmemT) -> Scales:
        """Scales in tensor memory: each atom is where its copy brought it from."""
        at, side = self._at(op, name), atoms(_rows_of(op, name))
        atom = TmemT(region.tmem, region.lanes, ATOM, region.dtype)
        columns = self.plan.columns(atom)

        def words(m: Member, v: tuple[Any, ...]) -> Iterator[Word]:
            cells = self._cells.get(m.cta.rank, {})
            for i in range(region.cols // ATOM):
                found = {id(c): c for a in columns[v[at][0] + ATOM * i] if (c := cells.get(a)) is not None}
                c = next(iter(found.values())) if len(found) == 1 else None
                yield ATOM_ROWS * (i % side), t.block * WORD * (i // side), self._place(c[4]) if c is not None and c[0] == region.tmem else None

        return Scales(self.plan, self.args, op, name, t.block, words, lambda v: v[at][1])

    def _from_tmem(self, op: Op, operand: str) -> Callable[[Member, tuple[Any, ...]], Tile]:
        e = op.operands[operand]
        assert isinstance(e, Expr) and isinstance(e.type, TmemT)
        atoms, at, name = self.plan.columns(e.type), self._at(op, operand), e.type.tmem

        def read(m: Member, v: tuple[Any, ...]) -> Tile:
            cells = self._cells.get(m.cta.rank, {})
            region = atoms[v[at]]
            first = cells.get(region[0]) if region else None
            for a in region:
                total = self._sums.get((-1 - m.cta.rank, a))
                if total is not None:
                    total.unread, total.read, total.count = -1, True, 0
            if first is None or first[0] != name:
                return NOTHING
            return first[1], moved(first[2], v[at]), first[3]

        return read


def ends_of(m: Member) -> tuple[Member, Member]:
    """A member that issues for a pair, as one of each CTA."""
    other = copy(m)
    other.cta = m.world.ctas[m.cta.rank ^ 1]
    return m, other


def _rows_of(op: Op, name: str) -> int:
    """Rows that an operand's scales are of."""
    acc = op.operands["acc"]
    assert isinstance(acc, Expr) and isinstance(acc.type, TmemT)
    return acc.type.lanes if name == "scale_a" else acc.type.cols


__all__ = ["TensorValues", "ends_of"]

"""What is known of values in tensor memory while a run is walked: fragments written there, operands and results read there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake_ir.program import Expr, Op
from cake_ir.types import TmemT, ViewT
from cake_verify.analyses.labels import NOTHING, UNKNOWN, Tile, moved
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_memory import MemoryValues
from cake_verify.analyses.value_state import Handler, Operand


class TensorValues(MemoryValues):
    """The handlers of tensor memory; cells are columns, labels stand at the region's first one."""

    def _tmem_operand(self, op: Op, operand: str) -> Operand:
        """The same of an operand in tensor memory."""
        e = op.operands[operand]
        assert isinstance(e, Expr) and isinstance(e.type, TmemT)
        find, at, name = self.plan.columns(e.type), self._at(op, operand), e.type.tmem

        def both(m: Member, v: tuple[Any, ...]) -> tuple[Tile, Any]:
            cells, region = self._cells.get(m.cta.rank, {}), find(v[at])
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
        find, at, name, source = self.plan.columns(e.type), self._at(op, "t"), e.type.tmem, self._from_tree(op, "x")

        def put(m: Member, v: tuple[Any, ...]) -> None:
            row, col, product = source(m, v)
            self._fill(m, find(v[at]), name, (0, 0, v[at]), row, col, product, (m.cta.rank,), op.id)

        return put

    def _copy_columns(self, op: Op) -> Handler:
        """A part of a view copied to tensor memory; where 32 rows go to each quarter of the lanes no lane says which row it is."""
        e, view = op.operands["t"], op.operands["view"]
        assert isinstance(e, Expr) and isinstance(e.type, TmemT) and isinstance(view, Expr) and isinstance(view.type, ViewT)
        find, at, name, source = self.plan.columns(e.type), self._at(op, "t"), e.type.tmem, self._from_view(op, "view")
        whole = view.type.shape[0] == e.type.lanes

        def put(m: Member, v: tuple[Any, ...]) -> None:
            row, col, product = source(m, v)
            self._fill(m, find(v[at]), name, (0, 0, v[at]), row if whole else UNKNOWN, col, product, (m.cta.rank,), op.id)

        return put

    def _from_tmem(self, op: Op, operand: str) -> Callable[[Member, tuple[Any, ...]], Tile]:
        e = op.operands[operand]
        assert isinstance(e, Expr) and isinstance(e.type, TmemT)
        find, at, name = self.plan.columns(e.type), self._at(op, operand), e.type.tmem

        def read(m: Member, v: tuple[Any, ...]) -> Tile:
            cells = self._cells.get(m.cta.rank, {})
            region = find(v[at])
            first = cells.get(region[0]) if region else None
            for a in region:
                total = self._sums.get((-1 - m.cta.rank, a))
                if total is not None:
                    total.unread, total.read, total.count = -1, True, 0
            if first is None or first[0] != name:
                return NOTHING
            return first[1], moved(first[2], v[at]), first[3]

        return read


__all__ = ["TensorValues"]

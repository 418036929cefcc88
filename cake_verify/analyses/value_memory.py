"""What copies, stores and sends do to what is known of values: labels of bytes are given and taken, and held against where they go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cake_ir.program import Expr, Op
from cake_ir.types import FragT, ViewT
from cake_verify.analyses.labels import NO_PRODUCT, NOTHING, SUMMED, UNKNOWN, Axes, Label, Tile, apart, boxed, labels_at, moved, run_along
from cake_verify.analyses.report_labels import form_of
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_state import Handler, ValueState

WIDE = 8
"""Elements from which on a tile is no single row or column, which a shift may move on purpose."""


class MemoryValues(ValueState):
    """The handlers of accesses of shared and global memory."""

    def _placed(self, op: Op, k: int, axis: str) -> Callable[[Member, tuple[Any, ...]], Tile]:
        """A vector of a line of a tensor, each element at a number of its own that is one more than the last."""
        tree = self.plan.code.ops[op.id].trees.get(f"coords.{k}")
        position = self.bounds.position(tree) if tree is not None else None
        down, number = isinstance(op.type, FragT) and op.type.form == "rowvec", op.id

        def placed(m: Member, v: tuple[Any, ...]) -> Tile:
            at = position(m, v) if position is not None else None
            label: Label = UNKNOWN if at is None else (axis, at[1], number)
            return (label, None, NO_PRODUCT) if down else (None, label, NO_PRODUCT)

        return placed

    def _first_of(self, op: Op) -> Callable[[Member, tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]] | None:
        """The coordinates of the first element of such a vector; None for any other access."""
        run = run_along(self.plan, op)
        tree = self.plan.code.ops[op.id].trees.get(f"coords.{run[0]}") if run is not None else None
        position = self.bounds.position(tree) if tree is not None else None
        if run is None or position is None:
            return None
        k = run[0]
        return lambda m, v, coords: (*coords[:k], at[1] if (at := position(m, v)) is not None else None, *coords[k + 1 :])

    def _load(self, op: Op) -> Handler | None:
        """A copy from a tensor into a view, in every CTA that receives it."""
        e, box = op.operands["view"], boxed(self.plan, op)
        assert isinstance(e, Expr) and isinstance(e.type, ViewT)
        atoms, at, number, name = self.plan.lookup(op, "view"), self._at(op, "view"), op.id, e.type.view
        coords, offset = (self.plan.code.ops[op.id].index.get(n, -1) for n in ("coords", "offset"))
        axis = op.attrs.get("multicast")
        receivers = self.plan.multicast(str(axis)) if axis and self.plan.ranks > 1 else None
        flip, tensor = e.type.transposed, op.attrs.get("tensor")

        def load(m: Member, v: tuple[Any, ...]) -> None:
            row, col = (UNKNOWN, UNKNOWN) if box is None or flip or coords < 0 else labels_at(box, v[coords], number)
            contents = (tensor, v[coords], v[at][1:]) if coords >= 0 else None
            if self.scaled:
                if offset >= 0:
                    contents = (tensor, (v[offset],), v[at][1:])
                self.loaded[contents] = number
            self._fill(m, atoms[v[at]], name, v[at], row, col, NO_PRODUCT, receivers[m.cta.rank] if receivers else (m.cta.rank,), number, contents)

        return load

    def _fill(self, m: Member, region: list[int], name: str, at: tuple[int, int, int], row: Label, col: Label, product: Axes, ranks: tuple[int, ...], number: int, contents: Any = None) -> None:
        self._clock += 1
        if at[1] or at[2]:
            row, col = moved(row, -at[1]), moved(col, -at[2])
        cell = (name, row, col, product, contents or self._clock, number, at[0])
        for r in ranks:
            cells = self._cells.setdefault(r, {})
            for a in region:
                cells[a] = cell

    def _put(self, op: Op) -> Handler | None:
        """A fragment written to a view, or another write of which nothing is known."""
        e = op.operands.get("view")
        if not isinstance(e, Expr) or not isinstance(e.type, ViewT):
            return self._read_only(op)
        atoms, at, t = self.plan.lookup(op, "view"), self._at(op, "view"), e.type
        x = op.operands.get("x")
        form = x.type.form if isinstance(x, Expr) and isinstance(x.type, FragT) else ""
        source = self._from_tree(op, "x") if op.name in ("store", "send") else None
        to = self.plan.code.ops[op.id].index.get("cta")

        def put(m: Member, v: tuple[Any, ...]) -> None:
            first, second, product = source(m, v) if source is not None else NOTHING
            ends: tuple[Label, Label] = (None, first) if form == "rowvec" and t.rank == 1 else (first, second)
            row, col = (ends[1], ends[0]) if t.transposed else ends
            self._fill(m, atoms[v[at]], t.view, v[at], row, col, product, (m.cta.rank if to is None else v[to],), op.id)

        return put

    def _past(self, label: Label, by: int, n: int) -> bool:
        """Whether a tile that is stored whole tiles away was loaded behind the end of its axis, where another load of its tensor steps alike
        from elsewhere: another tile than the one meant. Of a tensor's only load the schedule gate says where it starts."""
        if not label or n < WIDE or by % n:
            return False
        extent = self.bounds.args.get(label[0], self.plan.program.tunables.get(label[0]))
        if not isinstance(extent, int) or label[1] < extent:
            return False
        mine, tensor = form_of(self.plan, label), self.plan.program.ops[label[2]].attrs.get("tensor")
        others = [s.op.id for s in self.plan.sites.values() if s.op.attrs.get("tensor") == tensor and s.op.id != label[2]]
        forms = [form_of(self.plan, (label[0], 0, number)) for number in others]
        return mine is not None and any(f is not None and f.terms == mine.terms and f.constant != mine.constant for f in forms)

    def _store(self, op: Op, source: Callable[[Member, tuple[Any, ...]], Iterable[Tile]]) -> Handler:
        """A store to a tensor: what the value means against where it goes."""
        box = boxed(self.plan, op)
        coords = self.plan.code.ops[op.id].index.get("coords", -1)
        number = op.id

        def store(m: Member, v: tuple[Any, ...]) -> None:
            for row, col, product in source(m, v):
                if box is None or coords < 0:
                    continue
                to_row, to_col = labels_at(box, v[coords], number)
                if _across(row, to_row, to_col, product, col) or _across(col, to_col, to_row, product, row):
                    self.clash("transposed", op, m, v, 0, row or col, to_row or to_col)
                    continue
                sides = ((row, to_row, col or to_col), (col, to_col, row or to_row))  # where the other side has no name at either end, either side may be the one that was summed
                gone = next((to for label, to, beside in sides if product and not label and to and beside and SUMMED + to[0] in product and to[0] not in product), None)
                if gone is not None:
                    self.clash("summed", op, m, v, 0, gone, gone)
                    continue
                for axis, label, to, n in ((0, row, to_row, box.rows), (1, col, to_col, box.cols)):
                    by = apart(label, to)
                    if by is not None and label:
                        self.moves.setdefault((number, axis), {}).setdefault(label[2], set()).add(by)
                    if by and (product or abs(by) >= n):
                        self.clash("stored", op, m, v, axis, label, to, bool(product) or self._past(label, by, n))

        return store


def _across(label: Label, to: Label, other: Label, product: Axes, beside: Label) -> bool:
    """Whether an axis of a product is stored along another one, although the product has that too, or the tensor has the axis elsewhere and not for what lies `beside` it."""
    if not label or not to or label[0] == to[0] or not product:
        return False
    return to[0] in product or bool(other and other[0] == label[0] and not (beside and beside[0] == label[0]))


__all__ = ["MemoryValues"]

"""Where an unrolled loop stands in a fragment: the indices and coordinates that its element has, as C text."""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda import operand_positions
from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.context import Context
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import (
    Index,
    column_slot,
    colvec_col,
    elements,
    operand_order,
    packing,
    row_slot,
    rowvec_row,
    run_slot,
    tile_blocks,
    tile_col,
    tile_columns,
    tile_row,
)  # fmt: skip
from cake_ir.span import NOWHERE
from cake_ir.types import FragT

TILES = ("acc", "a")


@dataclass(frozen=True, slots=True)
class At:
    """One element of a fragment of type `type`, at `index` of its element order."""

    type: FragT
    index: Index

    @property
    def flat(self) -> str:
        """Index into an array with one element a register."""
        return self.index.text

    def packed(self, per: int) -> tuple[str, str]:
        """Index into an array with `per` elements a register, and the element's number in it."""
        return self.index.divided(per), self.index.modulo(per)

    def flat_position(self, ctx: Context) -> str:
        """Row-major number of an element of a `vec`."""
        return vec_element(ctx, self.type, self.index)

    def shifted(self, offset: str) -> str:
        """The flat index plus a C text."""
        return f"{self.flat} + {offset}" if offset else self.flat

    def row_slot(self, ctx: Context) -> str:
        """Index into a rowvec with the same rows."""
        if self.type.form == "rowvec":
            return self.flat
        if self.type.form == "vec":
            return run_slot(self.type, ctx.role.warps, self.index)
        if self.type.form == "rows":
            return "0" if self.type.rows == 32 * ctx.role.warps else self.index.divided(self.type.cols)
        return row_slot(self.type, ctx.role.warps, self.index)

    def col_slot(self, ctx: Context) -> str:
        """Index into a colvec with the same columns."""
        if self.type.form == "colvec":
            return self.flat
        if self.type.form == "a" and operand_order(self.type) != 2:
            return not_lowered(f"a column vector with {self.type}, whose threads own other columns", NOWHERE)
        if self.type.form == "rows":
            return operand_positions.rows_col(ctx, self.type, self.index)
        return column_slot(self.type, ctx.role.warps, self.index)

    def row(self, ctx: Context) -> str:
        """Row of the element, relative to the fragment, as an int."""
        t = self.type
        if t.form == "rowvec":
            return rowvec_row(ctx, t, self.index)
        if t.form == "vec":
            return f"{operand(vec_element(ctx, t, self.index))} / {t.cols}" if t.rows > 1 else "0"
        if t.form == "a":
            return operand_positions.a_row(ctx, t, self.index)
        if t.form == "b":
            return operand_positions.b_row(t, self.index)
        return operand_positions.rows_row(ctx, t, self.index) if t.form == "rows" else tile_row(ctx, t, self.index)

    def col(self, ctx: Context) -> str:
        """Column of the element, relative to the fragment, as an int."""
        t = self.type
        if t.form == "colvec":
            return colvec_col(t, self.index)
        if t.form == "vec":
            flat = vec_element(ctx, t, self.index)
            return f"{operand(flat)} % {t.cols}" if t.rows > 1 else flat
        if t.form == "a" and operand_order(t) != 2:
            return operand_positions.a_col(t, self.index)
        if t.form == "b":
            return operand_positions.b_col(t, self.index)
        return operand_positions.rows_col(ctx, t, self.index) if t.form == "rows" else tile_col(ctx, t, self.index)


def vec_element(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the row-major number of element i of a `vec` fragment: runs are dealt to the member's threads in turn."""
    chunk = t.chunk or 1
    run = i.divided(chunk) if elements(t, ctx.role.warps) != chunk else "0"
    thread = f"({operand(run)} * {ctx.role.threads} + (int)thread)" if run != "0" else "(int)thread"
    start = f"{thread} * {chunk}" if chunk != 1 else thread
    within = i.modulo(chunk) if run != "0" else i.text
    return start if within == "0" else f"{start} + {within}"


def trips(ctx: Context, t: FragT, per: int) -> int:
    """Trips of a loop that takes `per` elements at a time."""
    return elements(t, ctx.role.warps) // per


def step(t: FragT, *sources: FragT) -> int:
    """Elements a trip so that no packed register is split: the widest packing of the fragment and of what is read."""
    return max([packing(t), *(packing(s) for s in sources)])


__all__ = ["TILES", "At", "step", "tile_blocks", "tile_columns", "trips", "vec_element"]

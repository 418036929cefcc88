"""A view operand at run time: which cells of shared memory an operation's elements are, with the hazards of touching them."""

from __future__ import annotations

from typing import Any

from cake_backend.simulate import derived
from cake_backend.simulate.floats import Array, is_float
from cake_backend.simulate.machine import Site, Vals
from cake_backend.simulate.memory import Cells, Misaligned, OutsideView, Pool, is_poison
from cake_backend.simulate.registers import Held
from cake_backend.simulate.state import Cta, Warp
from cake_backend.simulate.tensors import Tensor, reachable
from cake_ir.program import Expr
from cake_ir.types import FragT, ViewT


def tensor_of(site: Site) -> Tensor:
    """The tensor that an operation names."""
    return site.machine.tensors[str(site.op.attrs["tensor"])]


class ViewAccess:
    """The view operand `name` of one operation."""

    def __init__(self, site: Site, name: str) -> None:
        e = site.op.operands[name]
        assert isinstance(e, Expr) and isinstance(e.type, ViewT)
        self.site = site
        self.machine = site.machine
        self.type = e.type
        self.view = e.type.view
        self.dtype = e.type.dtype
        self.position = site.code.index[name]
        ring = derived.ring_of(e, site.machine.rings)
        self.stages = site.machine.program.rings[ring].stages if ring is not None else 0

    def origin(self, vals: Vals) -> tuple[int, int, int]:
        """Stage number and storage origin (row, column)."""
        n, row, col = vals[self.position]
        return (n % self.stages if self.stages else n), reachable(row), reachable(col)

    def pool(self, cta: Cta) -> Pool:
        """The bytes that the view lives in."""
        return cta.pools[self.machine.placement.pools[self.view]]

    def whole(self, warp: Warp, vals: Vals, *, as_read: bool = False, row: int = 0, rows: int | None = None, align: int = 1) -> Cells:
        """The rectangle (or `rows` of it from `row` on) in storage orientation, or `as_read` with transposition applied.

        `align` is the multiple of bytes on which its user needs it to start.
        """
        stage, top, left = self.origin(vals)
        count = self.type.rows if rows is None else rows
        try:
            self.machine.placement.aligned(self.view, stage, top + row, left, align)
            return self.machine.placement.rectangle(
                self.view, stage, top + row, count, left, self.type.cols, as_read and self.type.transposed
            )
        except (OutsideView, Misaligned) as exc:
            raise self.machine.outside(self.site, warp, exc) from None

    def cells(self, warp: Warp, vals: Vals, key: Any, rows: Array, cols: Array) -> Cells:
        """Elements by (row, column) as read; `key` names the pattern, which a part of a view has for its own shape."""
        stage, top, left = self.origin(vals)
        if self.type.transposed:
            rows, cols = cols, rows
        try:
            return self.machine.placement.elements((key, self.type.rows, self.type.cols, top, left, self.type.transposed), self.view, stage, rows + top, cols + left)
        except (OutsideView, Misaligned) as exc:
            raise self.machine.outside(self.site, warp, exc) from None

    def of_fragment(self, warp: Warp, vals: Vals, t: FragT, h: Held) -> Cells:
        """The cells of the elements that a warp holds of a fragment of the view's shape."""
        rows, cols = self.places(t, h)
        return self.cells(warp, vals, h.key, rows, cols)

    def places(self, t: FragT, h: Held) -> tuple[Array, Array]:
        """(row, column) as read of the elements a warp holds: vectors run along a 1-D view, a vec fills any shape row by row."""
        if t.form == "vec":
            flat = h.rows * t.cols + h.cols
            width = self.type.cols if self.type.rank == 1 else self.type.shape[1]
            return flat // width, flat % width
        if self.type.rank == 1:
            return h.rows * 0, (h.rows if t.form == "rowvec" else h.cols)
        return h.rows, h.cols

    # ------------------------------------------------------------ touching

    def read(self, warp: Warp, cells: Cells) -> Array:
        """Bits as the warp sees them."""
        pool = self.pool(warp.cta)
        self.machine.hazard(self.site, warp, pool, cells, "r", f"bytes of `{self.view}`")
        raw = pool.read(cells)
        self.watch(raw)
        return raw

    def write(self, warp: Warp, cells: Cells, raw: Array) -> None:
        """An ordinary store."""
        pool = self.pool(warp.cta)
        self.machine.hazard(self.site, warp, pool, cells, "w", f"bytes of `{self.view}`")
        pool.write(cells, raw, id(warp))

    def read_async(self, warp: Warp, cells: Cells, cta: Cta | None = None) -> Array:
        """Bits of the warp's CTA (or another one) as the async proxy sees them; unfenced ordinary writes are a fault."""
        pool = self.pool(cta or warp.cta)
        if pool.stale(cells):
            self.machine.fault(
                "X008", f"the async proxy reads `{self.view}` before ordinary writes to it are visible there: no `lm.fence_proxy` lies between",
                self.site.op, warp=warp, view=self.view,
            )  # fmt: skip
        raw = pool.read_async(cells)
        self.watch(raw)
        return raw

    def watch(self, raw: Array) -> None:
        """Note a read of poison."""
        if is_float(self.dtype) and is_poison(raw):
            self.machine.note(self.site.op, f"bytes of `{self.view}` that nothing was written to are read")

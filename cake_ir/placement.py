"""From a program's records to the records of the layout, form and scheduler modules: the one place that knows both."""

from __future__ import annotations

from collections.abc import Sequence

from cake_ir.dtypes import DTYPES
from cake_ir.forms import Fragment
from cake_ir.layout import ViewLayout
from cake_ir.program import Scheduler, View
from cake_ir.scheduler import TileOrder
from cake_ir.types import FragT


def view_layout(view: View) -> ViewLayout:
    """Where the elements of a declared view live. fp6 elements sit in bytes in shared memory, as the tensor core reads them."""
    rows, cols = (1, view.shape[0]) if len(view.shape) == 1 else (view.shape[0], view.shape[1])
    bits = DTYPES[view.dtype].bits
    return ViewLayout(view.offset, rows, cols, 8 if bits == 6 else bits, view.stages, view.swizzle, view.stage_bytes)


def fragment(t: FragT, member_warps: int) -> Fragment:
    """Which thread of a member of ``member_warps`` warps holds which element of a value of type ``t``.

    A ``bool`` fragment is a mask of predicates: one bit an element, no registers of its own. Operands of 4 bits are packed, eight a register.
    """
    dtype = DTYPES[t.dtype]
    bits = 1 if t.dtype == "bool" else dtype.bits if dtype.bits == 4 and t.form in ("a", "b") else dtype.container_bits
    return Fragment(t.form, t.rows, t.cols, bits, member_warps, t.warps, t.chunk or 1, t.parent or "acc")


def tile_order(scheduler: Scheduler, tiles: Sequence[int]) -> TileOrder:
    """The order of a scheduler whose tile counts have been evaluated to ``tiles``."""
    return TileOrder(tuple(tiles), scheduler.names, scheduler.raster, scheduler.swizzle, scheduler.cluster, scheduler.deal)

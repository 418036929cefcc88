"""Rows gathered by the copy engine: four an instruction, by numbers that the issuing warp holds or reads from shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.access import ViewAccess, tensor_of
from cake_backend.simulate.copies import arm, check_start, transfer
from cake_backend.simulate.elementwise import build, frag_type, grid
from cake_backend.simulate.faults import Abort, NotSimulated, label
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Step, Vals
from cake_backend.simulate.state import Warp
from cake_backend.simulate.sync import position
from cake_ir.boxes import gather_boxes
from cake_ir.layout import LayoutError
from cake_ir.program import Expr
from cake_ir.types import ViewT


def _numbers(site: Site, count: int) -> Callable[[Warp, Vals], Array]:
    """The row numbers as the issuing warp has them."""
    e = site.op.operands["rows"]
    assert isinstance(e, Expr)
    if isinstance(e.type, ViewT):
        listed, every = ViewAccess(site, "rows"), np.arange(count)
        return lambda warp, vals: floats.decode(listed.read(warp, listed.cells(warp, vals, ("rows", count), np.zeros_like(every), every)), "i32")
    t = frag_type(e)
    value, parts = build(site, site.code.trees["rows"]), grid(site, t)

    def held(warp: Warp, vals: Vals) -> Array:
        h = parts[warp.warp]
        place = np.broadcast_to(h.rows if t.form == "rowvec" else h.cols, h.shape)
        given, real = np.broadcast_to(value(warp, vals), h.shape), np.broadcast_to(h.rows >= 0, h.shape)
        out = np.zeros(count, np.int64)
        out[place[real]] = given[real]
        return out

    return held


def _tma_gather(site: Site) -> Step:
    m, op = site.machine, site.op
    access, tensor, at = ViewAccess(site, "view"), tensor_of(site), position(site)
    if access.type.transposed:
        raise NotSimulated("a copy into a transposed view", op.span)
    name, col_at = str(op.attrs["barrier"]), site.code.index["col"]
    rows, cols = access.type.rows, access.type.cols
    numbers, nbytes = _numbers(site, rows), rows * cols * m.placement.size[access.view]

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        m.reach(site, warp, tensor)
        n, col = at(vals), int(vals[col_at])
        check_start(site, warp, tensor, col)
        _, top, left = access.origin(vals)
        try:
            gather_boxes(m.placement.layouts[access.view], row=top, rows=rows, col=left, cols=cols)
        except LayoutError as exc:
            raise Abort(m.located("X016", f"{label(op)} cannot be done in boxes: {exc}", op, warp=warp)) from None
        across, down = np.broadcast_arrays(col + np.arange(cols)[None, :], numbers(warp, vals).astype(np.int64)[:, None])
        inside = tensor.inside((down, across))
        where = (np.where(inside, down, 0), np.where(inside, across, 0))
        arm(site, warp, n, nbytes, nbytes)
        if tensor.unfenced is not None and inside.any():
            m.copied(site, warp, tensor, (down[inside], across[inside]))
        cells = access.whole(warp, vals)

        def source() -> Array:
            """What the rows hold when the copy completes, zero outside the tensor."""
            raw = tensor.raw[where] if tensor.raw.size else np.zeros(inside.shape, tensor.raw.dtype)
            return np.where(inside, raw, raw.dtype.type(0))

        transfer(site, warp, warp.cta, access, cells, source, name, n, nbytes)

    return step


VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {"view.tma_gather": (_tma_gather,)}

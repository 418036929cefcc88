"""Asynchronous copies between global and shared memory: by tensor map, in bulk, and by cp.async."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.access import ViewAccess, tensor_of
from cake_backend.simulate.barriers import MBarrier, OverArrival
from cake_backend.simulate.combine import combiner, update
from cake_backend.simulate.elementwise import build, frag_type, grid
from cake_backend.simulate.engines import BulkStore, CpAsync, Transfer, Work
from cake_backend.simulate.faults import Abort, NotSimulated, label
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Step, Vals
from cake_backend.simulate.memory import Cells, Pool
from cake_backend.simulate.state import Cta, Warp
from cake_backend.simulate.sync import barrier_at, position
from cake_backend.simulate.tensors import Tensor, box_axes, index_of
from cake_ir.boxes import tma_boxes
from cake_ir.derive.clusters import along, axis_of
from cake_ir.derive.pairs import landing
from cake_ir.dtypes import DTYPES
from cake_ir.layout import LayoutError
from cake_ir.ops.move import vec_chunk
from cake_ir.program import Expr
from cake_ir.types import FragT, ViewT


def landing_at(site: Site, cta: Cta, name: str, n: int) -> MBarrier:
    """The barrier on which what is copied into a CTA completes."""
    return barrier_at(cta.cluster.by_rank[landing(site.machine.program, name, cta.rank)], name, n)


def arm(site: Site, warp: Warp, n: int, own: int, room: int) -> None:
    """`arrive.expect_tx` in front of a phase's first copy, for all of them; this one moves `own` bytes, `room` of which the phase counts for it."""
    phase, name = site.machine.phases[site.op.id], str(site.op.attrs["barrier"])
    left, bar = warp.owing.get(phase.number, 0), landing_at(site, warp.cta, name, n)
    if phase.total is None:
        room = own
    if left <= 0:
        left = own if phase.total is None else phase.total
        try:
            bar.expect(left)
        except OverArrival as exc:
            raise site.machine.over_arrival(site, warp, name, bar.stage, exc) from None
    warp.owing[phase.number] = left - room
    if room > own:
        bar.complete(room - own)  # a real launch announces what will come; here it is known only now


def check_start(site: Site, warp: Warp, tensor: Tensor, col: int) -> None:
    """Report a first column that the copy engine cannot start at."""
    start = col * DTYPES[tensor.dtype].bits // 8
    if start % 16:
        message = f"{label(site.op)} starts {start} bytes into a row of `{tensor.name}`, the copy engine starts on multiples of 16"
        raise Abort(site.machine.located("X015", message, site.op, warp=warp))


def _check_boxes(site: Site, warp: Warp, access: ViewAccess, vals: Vals, tensor: Tensor, coords: Sequence[int], slices: int = 1) -> None:
    """Report a rectangle that the copy engine cannot move in boxes, or a first element of the tensor that it cannot start at."""
    check_start(site, warp, tensor, int(coords[0]))
    _, row, col = access.origin(vals)
    t, box = access.type, site.op.attrs.get("box")
    try:
        tma_boxes(
            site.machine.placement.layouts[access.view],
            len(coords),
            row=row,
            rows=t.rows,
            col=col,
            cols=t.cols,
            box=box,
            slices=slices,  # type: ignore[arg-type]  # a tuple or None
        )
    except LayoutError as exc:
        raise Abort(site.machine.located("X016", f"{label(site.op)} cannot be done in boxes: {exc}", site.op, warp=warp)) from None


def _tma_load(site: Site) -> Step:
    m, op = site.machine, site.op
    access, tensor, at = ViewAccess(site, "view"), tensor_of(site), position(site)
    if access.type.transposed:
        raise NotSimulated("a copy into a transposed view", op.span)
    name, coords_at = str(op.attrs["barrier"]), site.code.index["coords"]
    rows, cols = access.type.rows, access.type.cols
    axes = box_axes(len(tensor.shape), rows, cols, op.attrs.get("box"))  # type: ignore[arg-type]  # a tuple or None
    size = m.placement.size[access.view]
    multicast = op.attrs.get("multicast")
    axis = axis_of(m.program, str(multicast)) if multicast else 0
    slices = m.program.launch.cluster[axis] if multicast else 1
    if rows % slices:
        raise NotSimulated(f"a multicast of {rows} rows by {slices} CTAs", op.span)
    height = rows // slices

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        m.reach(site, warp, tensor)
        n, coords = at(vals), list(vals[coords_at])
        _check_boxes(site, warp, access, vals, tensor, coords, slices)
        arm(site, warp, n, rows * cols * size, rows * cols * size)
        part = warp.cta.place[axis] if slices > 1 else 0
        if slices > 1:
            coords[axes[1]] += part * height
        targets = along(m.program, axis, warp.cta.rank) if slices > 1 else (warp.cta.rank,)
        cells = access.whole(warp, vals, row=part * height, rows=height)
        cut = tensor.clipped(tuple(coords), axes, height, cols) if tensor.unfenced is not None else None
        if cut is not None:
            m.copied(site, warp, tensor, cut[1])
        for rank in targets:
            cta = warp.cta.cluster.by_rank[rank]
            source = lambda: tensor.block(tuple(coords), axes, height, cols)  # noqa: E731 - read when the copy completes
            transfer(site, warp, cta, access, cells, source, name, n, height * cols * cells.size)

    return step


def transfer(
    site: Site, warp: Warp, cta: Cta, access: ViewAccess, cells: Any, source: Callable[[], Array], name: str, n: int, nbytes: int
) -> None:
    """Put a copy into one CTA's shared memory in flight: its target is undefined until it lands and counts its bytes."""
    pool = access.pool(cta)
    site.machine.hazard(site, warp, pool, cells, "w", f"bytes of `{access.view}`")
    pool.poison(cells)
    bar = landing_at(site, cta, name, n)

    def land(work: Work) -> None:
        pool.write_async(cells, source().reshape(cells.index.shape))
        work.release()
        bar.complete(nbytes)

    work = Transfer("tma", site.op, warp, land, barriers=[(bar, nbytes)])
    work.guard(pool, cells, "w")
    site.machine.submit(work)


def _bulk_load(site: Site) -> Step:
    m, op = site.machine, site.op
    access, tensor, at = ViewAccess(site, "view"), tensor_of(site), position(site)
    name, first, count = str(op.attrs["barrier"]), site.code.index["offset"], site.code.index["n"]
    if m.placement.layouts[access.view].swizzle or access.type.transposed:
        raise NotSimulated("a bulk copy into a swizzled view", op.span)
    size = m.placement.size[access.view]

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        m.reach(site, warp, tensor)
        n, offset, length = at(vals), int(vals[first]), int(vals[count])
        flat = tensor.raw.reshape(-1)
        if offset < 0 or length < 0 or offset + length > flat.size:
            message = f"{label(op)} copies elements {offset}..{offset + length} of `{tensor.name}`, which has {flat.size}"
            raise Abort(m.located("X006", message, op, warp=warp))
        arm(site, warp, n, length * size, max(length * size, access.type.rows * access.type.cols * size))
        if length == 0:
            return
        if tensor.unfenced is not None:
            m.copied(site, warp, tensor, np.unravel_index(np.arange(offset, offset + length), tensor.shape))
        i = np.arange(length)
        access.whole(warp, vals, rows=0, align=16)
        cells = access.cells(warp, vals, ("bulk", length), i // access.type.cols, i % access.type.cols)
        transfer(site, warp, warp.cta, access, cells, lambda: flat[offset : offset + length].copy(), name, n, length * size)

    return step


def _tma_store(site: Site) -> Step:
    m, op = site.machine, site.op
    access, tensor = ViewAccess(site, "view"), tensor_of(site)
    if access.type.transposed:
        raise NotSimulated("a copy out of a transposed view", op.span)
    coords_at, rows_at = site.code.index["coords"], site.code.index.get("rows")
    full, cols = access.type.rows, access.type.cols
    axes = box_axes(len(tensor.shape), full, cols, op.attrs.get("box"))  # type: ignore[arg-type]  # a tuple or None
    merge = combiner(str(op.attrs["op"]), tensor.dtype) if op.name == "tma_reduce" else None

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        m.reach(site, warp, tensor)
        rows = full if rows_at is None else max(0, min(full, int(vals[rows_at])))
        coords = tuple(vals[coords_at])
        if min(map(int, coords)) < 0:
            message = f"{label(op)} starts at {tuple(map(int, coords))} of `{tensor.name}`: a copy into a tensor may end outside it, but not start in front of it"
            raise Abort(m.located("X006", message, op, warp=warp))
        _check_boxes(site, warp, access, vals, tensor, coords)
        cells = access.whole(warp, vals, rows=rows)
        pool = access.pool(warp.cta)
        m.hazard(site, warp, pool, cells, "r", f"bytes of `{access.view}`")

        def run(work: Work) -> None:
            assert isinstance(work, BulkStore)
            if work.done == 0:
                cut = tensor.clipped(coords, axes, rows, cols) if rows else None
                work.raw = (access.read_async(warp, cells)[cut[0]], cut) if cut is not None else None
            elif work.raw is not None:
                raw, (_, where, turned) = work.raw
                raw = raw.T if turned else raw
                if merge is None:
                    m.put(site, warp, tensor, where, raw)
                else:
                    update(site, warp, tensor, indices(where, tensor.shape), floats.decode(np.ascontiguousarray(raw), tensor.dtype), merge)

        work = BulkStore("store", op, warp, run, steps=2)
        work.guard(pool, cells, "r")
        warp.stores.append(work)
        m.submit(work)

    return step


def _bulk_store(site: Site) -> Step:
    """The first rows of a view, one copy a row, all in one group; nothing is clipped."""
    m, op = site.machine, site.op
    access, tensor = ViewAccess(site, "view"), tensor_of(site)
    if m.placement.layouts[access.view].swizzle or access.type.transposed:
        raise NotSimulated("a bulk copy out of a swizzled view", op.span)
    coords_at, rows_at = site.code.index["coords"], site.code.index["rows"]
    full, cols = access.type.rows, access.type.cols

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        m.reach(site, warp, tensor)
        rows, coords = max(0, min(full, int(vals[rows_at]))), tuple(vals[coords_at])
        cells = access.whole(warp, vals, rows=rows, align=16)
        along = {0: np.arange(cols)[None, :], 1: np.arange(rows)[:, None]} if len(coords) > 1 else {0: np.arange(cols)[None, :]}
        at = tuple(np.broadcast_to(a, (rows, cols)) for a in index_of(coords, along))
        if not tensor.inside(at).all():
            shape = " x ".join(map(str, tensor.shape))
            raise Abort(m.located("X006", f"{label(op)} copies rows outside `{tensor.name}`, which is {shape}", op, warp=warp))
        m.hazard(site, warp, access.pool(warp.cta), cells, "r", f"bytes of `{access.view}`")

        def run(work: Work) -> None:
            assert isinstance(work, BulkStore)
            if work.done == 0:
                work.raw = access.read_async(warp, cells) if rows else None
            elif work.raw is not None:
                m.put(site, warp, tensor, at, work.raw.reshape(rows, cols))

        work = BulkStore("store", op, warp, run, steps=2)
        work.guard(access.pool(warp.cta), cells, "r")
        warp.stores.append(work)
        m.submit(work)

    return step


def _own_pieces(site: Site, access: ViewAccess) -> list[tuple[Array, Array]]:
    """Rows and columns of the view that each warp copies of a gather: rows whose numbers its lanes hold, or pieces dealt in turn."""
    rows = site.op.operands["rows"]
    t = access.type
    if isinstance(rows, Expr) and isinstance(rows.type, FragT) and rows.type.parent != "vec":
        wm, wn = rows.type.warps or (1, 1)
        if wn > 1 and rows.type.parent == "b":
            raise NotSimulated("a gather by rows of a `b` that is split over warps", site.op.span)
        quads = np.arange(t.cols) // vec_chunk(access.dtype) // 4  # warps that share rows share their pieces, four at a time
        parts = [(h.rows[:, 0], np.flatnonzero(quads % wn == w // wm) if wn > 1 else np.arange(t.cols)) for w, h in enumerate(grid(site, rows.type))]
        return [(np.repeat(r, len(cols)), np.tile(cols, len(r))) for r, cols in parts]
    held = grid(site, FragT("vec", t.rows, t.cols, access.dtype, chunk=vec_chunk(access.dtype)))
    return [(h.rows[h.rows >= 0], h.cols[h.rows >= 0]) for h in held]


def _cp_async_rows(site: Site) -> Step:
    """As `cp_async`, with the tensor's row of each row of the view out of a list."""
    m, op = site.machine, site.op
    access, tensor, coords_at = ViewAccess(site, "view"), tensor_of(site), site.code.index["coords"]
    own, e = _own_pieces(site, access), op.operands["rows"]
    assert isinstance(e, Expr)
    listed = ViewAccess(site, "rows") if isinstance(e.type, ViewT) else None
    value = None if listed is not None else build(site, site.code.trees["rows"])
    held = None if listed is not None else grid(site, frag_type(e))

    def numbers(warp: Warp, vals: Vals, rows: Array) -> Array:
        if listed is not None:
            some = np.unique(rows)
            cells = listed.cells(warp, vals, ("rows", warp.warp), np.zeros_like(some), some)
            every = dict(zip(some.tolist(), floats.decode(listed.read(warp, cells), "i32").tolist(), strict=True))
        else:
            assert value is not None and held is not None
            h = held[warp.warp]
            given = np.broadcast_to(value(warp, vals), h.shape)
            every = dict(zip(np.broadcast_to(h.rows, h.shape).ravel().tolist(), given.ravel().tolist(), strict=True))
        return np.array([every[r] for r in rows.tolist()], np.int64)

    def step(warp: Warp, vals: Vals) -> None:
        m.reach(site, warp, tensor)
        rows, cols = own[warp.warp]
        if not rows.size:
            return
        access.whole(warp, vals, rows=0, align=16)
        cells, pool = access.cells(warp, vals, ("cp.async rows", warp.warp), rows, cols), access.pool(warp.cta)
        at = index_of(vals[coords_at], {0: cols, len(vals[coords_at]) - 1: numbers(warp, vals, rows)})
        m.hazard(site, warp, pool, cells, "w", f"bytes of `{access.view}`")
        _start(site, warp, tensor, at, pool, cells)

    return step


def _start(site: Site, warp: Warp, tensor: Tensor, at: tuple[Any, ...], pool: Pool, cells: Cells, wanted: Array | bool = True) -> None:
    """Start a warp's `cp.async` of one element a cell; cells outside the tensor, or not `wanted`, become zero."""

    def land(work: Work) -> None:
        inside = tensor.inside(at) & wanted
        raw = tensor.raw[tuple(np.where(inside, a, 0) for a in at)]
        pool.write(cells, np.where(inside, raw, raw.dtype.type(0)), id(warp))
        work.release()

    pool.poison(cells)
    work = CpAsync("cp_async", site.op, warp, land)
    work.guard(pool, cells, "w")
    warp.open_copies.append(work)
    site.machine.submit(work)


def indices(at: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Array, ...]:
    """An index of slices and numbers as one array an axis, of the shape that it selects."""
    ranges = [np.arange(*x.indices(n)) if isinstance(x, slice) else np.array([x]) for x, n in zip(at, shape, strict=True)]
    return tuple(np.meshgrid(*ranges, indexing="ij"))


def _cp_async(site: Site) -> Step:
    """Each warp copies its own 16-byte pieces: they are dealt to the member's threads in turn, like the runs of a `vec`."""
    m = site.machine
    access, tensor = ViewAccess(site, "view"), tensor_of(site)
    t = FragT("vec", access.type.rows, access.type.cols, access.dtype, chunk=vec_chunk(access.dtype))
    parts, axes = grid(site, t), box_axes(len(tensor.shape), access.type.rows, access.type.cols, None)
    coords_at = site.code.index["coords"]
    mask = build(site, site.code.trees["mask"]) if "mask" in site.code.trees else None

    def step(warp: Warp, vals: Vals) -> None:
        m.reach(site, warp, tensor)
        h, coords = parts[warp.warp], vals[coords_at]
        mine = h.rows >= 0
        rows, cols = h.rows[mine], h.cols[mine]
        if not rows.size:
            return
        access.whole(warp, vals, rows=0, align=16)
        cells = access.cells(warp, vals, ("cp.async", warp.warp), rows, cols)
        pool = access.pool(warp.cta)
        m.hazard(site, warp, pool, cells, "w", f"bytes of `{access.view}`")
        at = index_of(coords, {axes[0]: cols, axes[1]: rows} if axes[0] != axes[1] else {axes[0]: cols})

        wanted = np.broadcast_to(mask(warp, vals), h.shape)[mine] if mask is not None else True
        _start(site, warp, tensor, at, pool, cells, wanted)

    return step


VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {
    "view.tma_load": (_tma_load,), "view.bulk_load": (_bulk_load,), "view.tma_store": (_tma_store,), "view.cp_async": (_cp_async,),
    "view.tma_reduce": (_tma_store,), "view.bulk_store": (_bulk_store,), "view.cp_async_rows": (_cp_async_rows,),
}  # fmt: skip

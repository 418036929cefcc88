"""Moves between global memory, shared memory and registers: what they copy, and when."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from cake_backend.simulate import derived, floats
from cake_backend.simulate.access import ViewAccess
from cake_backend.simulate.barriers import OverArrival
from cake_backend.simulate.elementwise import Value, build, frag_type, grid
from cake_backend.simulate.engines import BulkStore, CpAsync, Transfer, Work
from cake_backend.simulate.faults import NotSimulated, label
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Step, Vals
from cake_backend.simulate.registers import held
from cake_backend.simulate.state import Cta, Warp
from cake_backend.simulate.sync import barrier_at, position
from cake_backend.simulate.tensors import Tensor, box_axes
from cake_ir.ops.move import vec_chunk
from cake_ir.program import Expr
from cake_ir.types import FragT, ScalarT, ViewT


def view_access(site: Site, name: str) -> ViewAccess:
    """The view operand of an operation."""
    return ViewAccess(site, name)


def tensor_of(site: Site) -> Tensor:
    """The tensor that an operation names."""
    return site.machine.tensors[str(site.op.attrs["tensor"])]


# ------------------------------------------------------------------ copy engine


def _arm(site: Site, warp: Warp, n: int, name: str, nbytes: int) -> None:
    """`arrive.expect_tx` in front of a slot's first copy, for all of them."""
    if (name, n) in warp.armed:
        return
    warp.armed = {(b, k) for b, k in warp.armed if b != name or k >= n - 64}
    warp.armed.add((name, n))
    bar = barrier_at(warp.cta, name, n)
    try:
        bar.expect(nbytes)
    except OverArrival as exc:
        raise site.machine.over_arrival(site, warp, name, bar.stage, exc) from None


def _tma_load(site: Site) -> Step:
    m, op = site.machine, site.op
    access, tensor, at = view_access(site, "view"), tensor_of(site), position(site)
    if access.type.transposed:
        raise NotSimulated("a copy into a transposed view", op.span)
    name, coords_at = str(op.attrs["barrier"]), site.code.index["coords"]
    rows, cols = access.type.rows, access.type.cols
    axes = box_axes(len(tensor.shape), rows, cols, op.attrs.get("box"))  # type: ignore[arg-type]  # a tuple or None
    total = m.bytes[op.id]
    multicast = op.attrs.get("multicast")
    axis = derived.cluster_axis(m.program, str(multicast)) if multicast else 0
    slices = m.program.launch.cluster[axis] if multicast else 1
    if rows % slices:
        raise NotSimulated(f"a multicast of {rows} rows by {slices} CTAs", op.span)
    height = rows // slices

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        n, coords = at(vals), list(vals[coords_at])
        assert total is not None
        _arm(site, warp, n, name, total)
        part = warp.cta.rank[axis] if slices > 1 else 0
        if slices > 1:
            coords[axes[1]] += part * height
        targets = derived.along(m.program, axis, warp.cta.rank) if slices > 1 else (warp.cta.rank,)
        cells = access.whole(warp, vals, row=part * height, rows=height)
        for rank in targets:
            cta = warp.cta.cluster.by_rank[rank]
            source = lambda: tensor.block(tuple(coords), axes, height, cols)  # noqa: E731 - read when the copy completes
            _transfer(site, warp, cta, access, cells, source, name, n, height * cols * cells.size)

    return step


def _transfer(site: Site, warp: Warp, cta: Cta, access: ViewAccess, cells: Any, source: Callable[[], Array], name: str, n: int, nbytes: int) -> None:
    """Put a copy into one CTA's shared memory in flight: its target is undefined until it lands and counts its bytes."""
    pool = access.pool(cta)
    site.machine.hazard(site, warp, pool, cells, "w", f"bytes of `{access.view}`")
    pool.poison(cells)
    bar = barrier_at(cta, name, n)

    def land(work: Work) -> None:
        pool.write_async(cells, source().reshape(cells.index.shape))
        work.release()
        bar.complete(nbytes)

    work = Transfer("tma", site.op, warp, land, barriers=[(bar, nbytes)])
    work.guard(pool, cells, "w")
    site.machine.submit(work)


def _bulk_load(site: Site) -> Step:
    m, op = site.machine, site.op
    access, tensor, at = view_access(site, "view"), tensor_of(site), position(site)
    name, first, count = str(op.attrs["barrier"]), site.code.index["offset"], site.code.index["n"]
    if m.placement.layouts[access.view].swizzle or access.type.transposed:
        raise NotSimulated("a bulk copy into a swizzled view", op.span)
    total = m.bytes[op.id]

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        n, offset, length = at(vals), int(vals[first]), int(vals[count])
        flat = tensor.raw.reshape(-1)
        if offset < 0 or length < 0 or offset + length > flat.size:
            m.fault("X006", f"{label(op)} copies elements {offset}..{offset + length} of `{tensor.name}`, which has {flat.size}", op, warp=warp)
            raise _stop(site, warp)
        size = m.placement.size[access.view]
        _arm(site, warp, n, name, total if total is not None else length * size)
        if length == 0:
            return
        i = np.arange(length)
        cells = access.cells(warp, vals, ("bulk", length), i // access.type.cols, i % access.type.cols)
        _transfer(site, warp, warp.cta, access, cells, lambda: flat[offset : offset + length].copy(), name, n, length * size)

    return step


def _stop(site: Site, warp: Warp) -> Exception:
    """End the run at the fault that was just reported."""
    from cake_backend.simulate.faults import Abort

    return Abort(site.machine.faults.pop())


def _tma_store(site: Site) -> Step:
    m, op = site.machine, site.op
    access, tensor = view_access(site, "view"), tensor_of(site)
    if access.type.transposed:
        raise NotSimulated("a copy out of a transposed view", op.span)
    coords_at, rows_at = site.code.index["coords"], site.code.index.get("rows")
    full, cols = access.type.rows, access.type.cols
    axes = box_axes(len(tensor.shape), full, cols, op.attrs.get("box"))  # type: ignore[arg-type]  # a tuple or None

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        rows = full if rows_at is None else max(0, min(full, int(vals[rows_at])))
        coords = tuple(vals[coords_at])
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
                m.put(site, warp, tensor, where, raw.T if turned else raw)

        work = BulkStore("store", op, warp, run, steps=2)
        work.guard(pool, cells, "r")
        warp.stores.append(work)
        m.submit(work)

    return step


def _cp_async(site: Site) -> Step:
    """Each warp copies its own 16-byte pieces: they are dealt to the member's threads in turn, like the runs of a `vec`."""
    m, op = site.machine, site.op
    access, tensor = view_access(site, "view"), tensor_of(site)
    t = FragT("vec", access.type.rows, access.type.cols, access.dtype, chunk=vec_chunk(access.dtype))
    parts, axes = grid(site, t), box_axes(len(tensor.shape), access.type.rows, access.type.cols, None)
    coords_at = site.code.index["coords"]
    mask = build(site, site.code.trees["mask"]) if "mask" in site.code.trees else None
    if mask is not None:
        raise NotSimulated("a masked cp.async", op.span)

    def step(warp: Warp, vals: Vals) -> None:
        h, coords = parts[warp.warp], vals[coords_at]
        mine = h.rows >= 0
        rows, cols = h.rows[mine], h.cols[mine]
        if not rows.size:
            return
        cells = access.cells(warp, vals, ("cp.async", warp.warp), rows, cols)
        pool = access.pool(warp.cta)
        m.hazard(site, warp, pool, cells, "w", f"bytes of `{access.view}`")
        at = _index(coords, {axes[0]: cols, axes[1]: rows} if axes[0] != axes[1] else {axes[0]: cols})

        def land(work: Work) -> None:
            inside = tensor.inside(at)
            raw = tensor.raw[tuple(np.where(inside, a, 0) for a in at)]
            pool.write(cells, np.where(inside, raw, raw.dtype.type(0)))
            work.release()

        pool.poison(cells)
        work = CpAsync("cp_async", op, warp, land)
        work.guard(pool, cells, "w")
        warp.open_copies.append(work)
        m.submit(work)

    return step


def _index(coords: Any, along: dict[int, Array]) -> tuple[Array, ...]:
    """Index arrays, outermost first, for coordinates (innermost first) with offsets along some axes."""
    return tuple(np.asarray(coords[axis] + along.get(axis, 0)) for axis in reversed(range(len(coords))))


# ------------------------------------------------------------------ shared memory and registers


def _view_store(site: Site) -> Step:
    access = view_access(site, "view")
    e = site.op.operands["x"]
    assert isinstance(e, Expr)
    t, x = frag_type(e), build(site, site.code.trees["x"])
    parts = grid(site, t)

    def step(warp: Warp, vals: Vals) -> None:
        h = parts[warp.warp]
        raw = floats.encode(np.asarray(np.broadcast_to(x(warp, vals), h.shape)), t.dtype)
        if not _writes(t, site.width, warp):
            return
        if t.form == "vec" and (h.rows < 0).any():
            mine = h.rows >= 0
            rows, cols = access.places(t, h)
            cells = access.cells(warp, vals, (h.key, "ragged"), rows[mine], cols[mine])
            raw = raw[mine]
        else:
            cells = access.of_fragment(warp, vals, t, h)
        access.write(warp, cells, raw)

    return step


def _writes(t: FragT, width: int, warp: Warp) -> bool:
    """Whether this warp writes: a value that several warps share is written by the first that holds it."""
    if t.form == "scalar":
        return warp.warp == 0
    wm, wn = t.warps or (width, 1)
    if t.form == "rowvec":
        return warp.warp // wm == 0 or wn == 1
    if t.form == "colvec":
        return warp.warp % wm == 0
    if t.form == "a":
        return warp.warp // wm == 0 or wn == 1
    if t.form == "b":
        return (warp.warp % wm if t.warps else warp.warp) == 0
    return True


def _view_load(site: Site) -> Step:
    access, m, op = view_access(site, "view"), site.machine, site.op
    t = op.type
    assert isinstance(t, FragT) and site.result is not None
    name, parts = site.result, grid(site, t)

    def step(warp: Warp, vals: Vals) -> None:
        h = parts[warp.warp]
        if t.form == "vec" and (h.rows < 0).any():
            mine = h.rows >= 0
            rows, cols = access.places(t, h)
            value = floats.poison(h.shape, t.dtype)
            value[mine] = floats.decode(access.read(warp, access.cells(warp, vals, (h.key, "ragged"), rows[mine], cols[mine])), t.dtype)
        else:
            value = floats.decode(access.read(warp, access.of_fragment(warp, vals, t, h)), t.dtype).reshape(h.shape)
        m.write_place(warp, name, value, op)

    return step


def _view_scalar(site: Site) -> Step:
    access = view_access(site, "view")
    at = site.code.index.get("i")
    width = access.type.cols if access.type.rank == 1 else access.type.shape[1]

    def step(warp: Warp, vals: Vals) -> Any:
        i = int(vals[at]) if at is not None else 0
        cells = access.cells(warp, vals, ("ld", i), np.array([i // width]), np.array([i % width]))
        return floats.decode(access.read(warp, cells), access.dtype)[0].item()

    return step


# ------------------------------------------------------------------ global memory and registers


def _places(site: Site, t: FragT, tensor: Tensor) -> Callable[[Warp, Vals], tuple[Array, ...]]:
    """Index arrays (outermost first) of a fragment's elements: columns along the innermost axis, rows along the next; vectors along the innermost."""
    coords_at = site.code.index["coords"]
    fragments: dict[int, Value] = {int(k.split(".")[1]): build(site, e) for k, e in site.code.trees.items() if k.startswith("coords.")}
    parts = grid(site, t)

    def at(warp: Warp, vals: Vals) -> tuple[Array, ...]:
        h, coords = parts[warp.warp], list(vals[coords_at])
        for k, f in fragments.items():
            coords[k] = np.asarray(f(warp, vals), np.int64)
        if t.form == "scalar":
            offsets: dict[int, Array] = {}
        elif t.form == "rowvec":
            offsets = {0: h.rows}
        elif t.form == "colvec" or t.rank == 1 or len(coords) == 1:
            offsets = {0: h.cols}
        else:
            offsets = {0: h.cols, 1: h.rows}
        if fragments:
            offsets = {k: v for k, v in offsets.items() if k not in fragments}
        return tuple(np.broadcast_to(a, h.shape) for a in _index(coords, offsets))

    return at


def _allowed(site: Site, t: FragT) -> Callable[[Warp, Vals], Array]:
    """Which of a warp's elements an operation touches: those that exist in the fragment and whose mask holds."""
    parts = grid(site, t)
    mask = build(site, site.code.trees["mask"]) if "mask" in site.code.trees else None

    def of(warp: Warp, vals: Vals) -> Array:
        h = parts[warp.warp]
        ok = np.broadcast_to(h.rows >= 0, h.shape)
        return ok if mask is None else ok & np.broadcast_to(mask(warp, vals), h.shape)

    return of


def _bounded(site: Site, warp: Warp, tensor: Tensor, at: tuple[Array, ...], ok: Array, clip: bool) -> Array:
    """`ok` without the elements outside the tensor; without `clip` one outside is a fault and ends the run."""
    inside = tensor.inside(at)
    if not clip and bool((ok & ~inside).any()):
        bad = np.argwhere(ok & ~inside)[0]
        where = tuple(int(a[tuple(bad)]) for a in at)
        site.machine.fault(
            "X006", f"{label(site.op)} touches element {where} of `{tensor.name}`, which is {' x '.join(map(str, tensor.shape))}", site.op, warp=warp,
            expected=list(tensor.shape), found=list(where),
        )  # fmt: skip
        raise _stop(site, warp)
    return ok & inside


def _load(site: Site) -> Step:
    m, op, tensor = site.machine, site.op, tensor_of(site)
    t = op.type
    assert isinstance(t, FragT) and site.result is not None
    name, places, allowed, clip = site.result, _places(site, t, tensor), _allowed(site, t), bool(op.attrs.get("clip"))
    fill = floats.compute_dtype(t.dtype)(op.attrs.get("fill") or 0)

    def step(warp: Warp, vals: Vals) -> None:
        at = places(warp, vals)
        ok = _bounded(site, warp, tensor, at, allowed(warp, vals), clip)
        if ok.all():
            value = floats.decode(tensor.raw[at], t.dtype)
        else:
            value = np.where(ok, floats.decode(tensor.raw[tuple(np.where(ok, a, 0) for a in at)], t.dtype), fill)
        m.write_place(warp, name, value, op)

    return step


def _store(site: Site) -> Step:
    m, op, tensor = site.machine, site.op, tensor_of(site)
    e = op.operands["x"]
    assert isinstance(e, Expr)
    if isinstance(e.type, ScalarT):
        return _store_scalar(site, tensor)
    t, x = frag_type(e), build(site, site.code.trees["x"])
    parts, places, allowed, clip = grid(site, t), _places(site, t, tensor), _allowed(site, t), bool(op.attrs.get("clip"))

    def step(warp: Warp, vals: Vals) -> None:
        value = np.asarray(np.broadcast_to(x(warp, vals), parts[warp.warp].shape))
        if not _writes(t, site.width, warp):
            return
        at = places(warp, vals)
        ok = _bounded(site, warp, tensor, at, allowed(warp, vals), clip)
        raw = floats.encode(value, t.dtype)
        if ok.all():
            m.put(site, warp, tensor, at, raw)
        elif ok.any():
            m.put(site, warp, tensor, tuple(a[ok] for a in at), raw[ok])

    return step


def _store_scalar(site: Site, tensor: Tensor) -> Step:
    value_at, coords_at = site.code.index["x"], site.code.index["coords"]

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        at = _index([np.array([c]) for c in vals[coords_at]], {})
        _bounded(site, warp, tensor, at, np.ones(1, np.bool_), False)
        value = np.array([vals[value_at]], floats.compute_dtype(tensor.dtype))
        site.machine.put(site, warp, tensor, at, floats.encode(floats.rounded(value, tensor.dtype) if floats.is_float(tensor.dtype) else value, tensor.dtype))

    return step


def _scalar(site: Site) -> Step:
    tensor, i = tensor_of(site), site.code.index["i"]

    def step(warp: Warp, vals: Vals) -> Any:
        at = (np.array([int(vals[i])]),)
        _bounded(site, warp, tensor, at if len(tensor.shape) == 1 else at, np.ones(1, np.bool_), False)
        return floats.decode(tensor.raw[at], tensor.dtype)[0].item()

    if len(tensor.shape) != 1:
        raise NotSimulated("`lm.ld` of a tensor with more than one dimension", site.op.span)
    return step


VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {
    "view.tma_load": (_tma_load,), "view.bulk_load": (_bulk_load,), "view.tma_store": (_tma_store,), "view.cp_async": (_cp_async,),
    "view.store": (_view_store,), "view.load": (_view_load,), "view.ldmatrix": (_view_load,), "view.ld": (_view_scalar,),
    "lm.load": (_load,), "lm.store": (_store,), "lm.ld": (_scalar,),
}  # fmt: skip

REFUSED: dict[str, str] = {
    "view.tma_gather": "row gather by the copy engine", "view.cp_async_rows": "row gather by cp.async", "view.tma_reduce": "a reduction by the copy engine",
    "view.bulk_store": "row-wise bulk stores", "view.atomic": "atomics in shared memory", "view.send": "stores to a peer CTA", "lm.atomic": "atomics in global memory",
}  # fmt: skip

__all__ = ["REFUSED", "VALUES", "ViewT", "held", "view_access"]

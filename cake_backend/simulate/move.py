"""Moves between registers and memory, element by element; the asynchronous copies of this family are in `copies`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake_backend.simulate import copies, floats, row_gather
from cake_backend.simulate.access import ViewAccess, tensor_of
from cake_backend.simulate.elementwise import Value, build, frag_type, grid
from cake_backend.simulate.faults import Abort, NotSimulated, label
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Step, Vals
from cake_backend.simulate.registers import by_lane
from cake_backend.simulate.state import Warp
from cake_backend.simulate.tensors import Tensor, index_of
from cake_ir.ops.vectors import rows_placed
from cake_ir.program import Expr
from cake_ir.types import FragT, ScalarT

# ------------------------------------------------------------------ shared memory and registers


def _view_store(site: Site) -> Step:
    access = ViewAccess(site, "view")
    e = site.op.operands["x"]
    assert isinstance(e, Expr)
    t, x = frag_type(e), build(site, site.code.trees["x"])
    parts = grid(site, t)

    def step(warp: Warp, vals: Vals) -> None:
        h = parts[warp.warp]
        raw = floats.encode(np.asarray(np.broadcast_to(x(warp, vals), h.shape)), t.dtype)
        if not _writes(t, site.width, warp):
            return
        if by_lane(t) and (h.rows < 0).any():
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
    access, m, op = ViewAccess(site, "view"), site.machine, site.op
    t = op.type
    assert isinstance(t, FragT) and site.result is not None
    name, parts = site.result, grid(site, t)

    def step(warp: Warp, vals: Vals) -> None:
        h = parts[warp.warp]
        if by_lane(t) and (h.rows < 0).any():
            mine = h.rows >= 0
            rows, cols = access.places(t, h)
            value = floats.poison(h.shape, t.dtype)
            value[mine] = floats.decode(access.read(warp, access.cells(warp, vals, (h.key, "ragged"), rows[mine], cols[mine])), t.dtype)
        else:
            value = floats.decode(access.read(warp, access.of_fragment(warp, vals, t, h)), t.dtype).reshape(h.shape)
        m.write_place(warp, name, value, op)

    return step


def _view_scalar(site: Site) -> Step:
    access = ViewAccess(site, "view")
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
            flat = t.rank == 1 or t.form in ("rowvec", "colvec")
            offsets = {} if flat else {k: v for k, v in offsets.items() if k not in fragments and not (k == 1 and rows_placed(site.op.operands["coords"]))}
        return tuple(np.broadcast_to(a, h.shape) for a in index_of(coords, offsets))

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
    site.machine.reach(site, warp, tensor)
    inside = tensor.inside(at)
    if not clip and bool((ok & ~inside).any()):
        bad = np.argwhere(ok & ~inside)[0]
        where = tuple(int(a[tuple(bad)]) for a in at)
        shape = " x ".join(map(str, tensor.shape))
        message = f"{label(site.op)} touches element {where} of `{tensor.name}`, which is {shape}"
        raise Abort(site.machine.located("X006", message, site.op, warp=warp, expected=list(tensor.shape), found=list(where)))
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
        at = index_of([np.array([c]) for c in vals[coords_at]], {})
        _bounded(site, warp, tensor, at, np.ones(1, np.bool_), False)
        value = np.array([vals[value_at]], floats.compute_dtype(tensor.dtype))
        site.machine.put(
            site,
            warp,
            tensor,
            at,
            floats.encode(floats.rounded(value, tensor.dtype) if floats.is_float(tensor.dtype) else value, tensor.dtype),
        )

    return step


def _scalar(site: Site) -> Step:
    tensor, i = tensor_of(site), site.code.index["i"]

    def step(warp: Warp, vals: Vals) -> Any:
        at = (np.array([int(vals[i])]),)
        _bounded(site, warp, tensor, at, np.ones(1, np.bool_), False)
        return floats.decode(tensor.raw[at], tensor.dtype)[0].item()

    if len(tensor.shape) != 1:
        raise NotSimulated("`lm.ld` of a tensor with more than one dimension", site.op.span)
    return step


VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {
    **copies.VALUES, **row_gather.VALUES,
    "view.store": (_view_store,), "view.load": (_view_load,), "view.ldmatrix": (_view_load,), "view.ld": (_view_scalar,),
    "lm.load": (_load,), "lm.store": (_store,), "lm.ld": (_scalar,),
}  # fmt: skip

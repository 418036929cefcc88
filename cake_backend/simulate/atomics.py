"""Atomic updates: each element is combined with what is in memory in one step, in any order that the interleaving gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.access import ViewAccess, tensor_of
from cake_backend.simulate.combine import Combine, apply, combiner, update
from cake_backend.simulate.elementwise import build, frag_type, grid
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Step, Vals
from cake_backend.simulate.move import _allowed, _bounded, _places, _writes
from cake_backend.simulate.state import Warp
from cake_backend.simulate.tensors import Tensor, index_of
from cake_ir.program import Expr
from cake_ir.types import ScalarT


def _atomic(site: Site) -> Step:
    op, tensor = site.op, tensor_of(site)
    e = op.operands["x"]
    assert isinstance(e, Expr)
    f, clip = combiner(str(op.attrs["op"]), tensor.dtype), bool(op.attrs.get("clip"))
    if isinstance(e.type, ScalarT):
        return _scalar(site, tensor, f, clip)
    t, x = frag_type(e), build(site, site.code.trees["x"])
    parts, places, allowed = grid(site, t), _places(site, t, tensor), _allowed(site, t)

    def step(warp: Warp, vals: Vals) -> None:
        h = parts[warp.warp]
        value = np.asarray(np.broadcast_to(x(warp, vals), h.shape))
        if not _writes(t, site.width, warp):
            return
        at = places(warp, vals)
        ok = _bounded(site, warp, tensor, at, allowed(warp, vals), clip) & _once(t, h.rows)
        if ok.any():
            update(site, warp, tensor, tuple(a[ok] for a in at), value[ok], f)

    return step


def _once(t: object, rows: Array) -> Array:
    """One lane of those that share a row of a vec's row vector; every other form holds an element once a warp."""
    if rows.shape[0] == 32 and getattr(t, "form", "") == "rowvec":
        chunk = getattr(t, "chunk", 1) or 1
        return np.broadcast_to((np.arange(32) % chunk == 0)[:, None], rows.shape)
    return np.ones((1, 1), np.bool_)


def _scalar(site: Site, tensor: Tensor, f: Combine, clip: bool) -> Step:
    e = site.op.operands["x"]
    assert isinstance(e, Expr)
    value_at, coords_at = site.code.index["x"], site.code.index["coords"]

    def step(warp: Warp, vals: Vals) -> None:
        if not warp.elected:
            return
        at = index_of([np.array([c]) for c in vals[coords_at]], {})
        ok = _bounded(site, warp, tensor, at, np.ones(1, np.bool_), clip)
        if ok.all():
            update(site, warp, tensor, at, np.array([vals[value_at]], floats.compute_dtype(tensor.dtype)), f)

    return step


def _view_atomic(site: Site) -> Step:
    """Each element combined with the element of a 1-D view that its index names; an index outside touches nothing."""
    access, op = ViewAccess(site, "view"), site.op
    e, i = op.operands["x"], op.operands["idx"]
    assert isinstance(e, Expr) and isinstance(i, Expr)
    t, n = frag_type(i), access.type.cols
    idx, parts = build(site, site.code.trees["idx"]), grid(site, t)
    x = build(site, site.code.trees["x"]) if "x" in site.code.trees else None
    f, dtype = combiner(str(op.attrs["op"]), access.dtype), access.dtype

    def step(warp: Warp, vals: Vals) -> None:
        h = parts[warp.warp]
        where = np.broadcast_to(np.asarray(idx(warp, vals)), h.shape)
        value = x(warp, vals) if x is not None else floats.compute_dtype(dtype)(vals[site.code.index["x"]])
        if not _writes(t, site.width, warp):
            return
        ok = (where >= 0) & (where < n) & (h.rows >= 0) & _once(t, h.rows)
        if not ok.any():
            return
        at, mine = where[ok].astype(np.int64), np.broadcast_to(value, h.shape)[ok]
        unique, inverse = np.unique(at, return_inverse=True)
        cells = access.cells(warp, vals, ("atomic", unique.tobytes()), np.zeros_like(unique), unique)
        held = access.read(warp, cells)
        apply(held, inverse.reshape(-1), mine, dtype, f)
        access.write(warp, cells, held)

    return step


VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {"lm.atomic": (_atomic,), "view.atomic": (_view_atomic,)}

"""Fragments as they come into being: registers with a first value, vectors, pairs."""

from __future__ import annotations

import numpy as np

from cake_backend.simulate.elementwise import Builder, Value, build, frag_type, grid
from cake_backend.simulate.floats import compute_dtype, rounded
from cake_backend.simulate.machine import Site
from cake_ir.dtypes import DTYPES
from cake_ir.program import Expr


def _fill(site: Site, e: Expr) -> Value:
    t, init = frag_type(e), e.attrs.get("init")
    if init is None:
        return lambda warp, vals: site.machine.fresh(warp, t)
    kind = compute_dtype(t.dtype)
    if DTYPES[t.dtype].is_float:
        init = rounded(np.full(1, init, np.float32), t.dtype)[0]
    shapes = [h.shape for h in grid(site, t)]
    if t.stages > 1:
        return lambda warp, vals: [np.full(shapes[warp.warp], init, kind) for _ in range(t.stages)]
    return lambda warp, vals: np.full(shapes[warp.warp], init, kind)


def _pair(site: Site, e: Expr) -> Value:
    a, b = (build(site, x) for x in e.args)
    return lambda warp, vals: (a(warp, vals), b(warp, vals))


PURE: dict[str, Builder] = {"frag": _fill, "rowvec": _fill, "colvec": _fill, "pair": _pair}

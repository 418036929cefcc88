"""`lm.scan`: inclusive prefixes in the order in which the generated code combines: neighbours, lanes, what came before."""

from __future__ import annotations

import numpy as np

from cake_backend.simulate.elementwise import Builder, Value, build, frag_type
from cake_backend.simulate.faults import NotSimulated
from cake_backend.simulate.floats import Array, is_float
from cake_backend.simulate.machine import Site
from cake_backend.simulate.reduce import Combine, combiner
from cake_ir.program import Expr


def neutral(op: str, dtype: str) -> float | int:
    """What changes nothing."""
    if op == "add":
        return 0
    if is_float(dtype):
        return -np.inf if op == "max" else np.inf
    return -(2**31) if op == "max" else 2**31 - 1


def over_lanes(x: Array, f: Combine, zero: float | int) -> tuple[Array, Array]:
    """Inclusive and exclusive prefixes along the last axis by doubling distances."""
    total, d = x.copy(), 1
    while d < x.shape[-1]:
        total = np.concatenate([total[..., :d], f(total[..., :-d], total[..., d:])], axis=-1)
        d *= 2
    front = np.concatenate([np.full_like(total[..., :1], zero), total[..., :-1]], axis=-1)
    return total, front


def along_columns(x: Array, f: Combine, zero: float | int) -> Array:
    """Rows of a tile: pairs of columns in a thread, four threads a block of eight, block after block."""
    r, c = x.shape
    v, out = x.reshape(r, c // 8, 4, 2), np.empty_like(x).reshape(r, c // 8, 4, 2)
    carry = np.full((r, 1), zero, x.dtype)
    for j in range(c // 8):
        total, front = over_lanes(f(v[:, j, :, 0], v[:, j, :, 1]), f, zero)
        out[:, j, :, 0] = f(f(carry, front), v[:, j, :, 0])
        out[:, j, :, 1] = f(out[:, j, :, 0], v[:, j, :, 1])
        carry = f(carry, total[:, 3:])
    return out.reshape(r, c)


def along_rows(x: Array, f: Combine, zero: float | int) -> Array:
    """Columns of a tile: eight rows on eight lanes, group after group."""
    r, c = x.shape
    out, carry = np.empty_like(x), np.full((c, 1), zero, x.dtype)
    for i in range(0, r, 8):
        own = x[i : i + 8].T
        total, front = over_lanes(own, f, zero)
        out[i : i + 8] = f(f(carry, front), own).T
        carry = f(carry, total[:, 7:])
    return out


def runs(x: Array, chunk: int, lanes: int, f: Combine, zero: float | int, *, carries: bool) -> Array:
    """(32 lanes, registers) of a `vec`: a thread's run, the lanes of a row, and with `carries` the runs before."""
    own = np.ascontiguousarray(x).reshape(32, -1, chunk).copy()
    for k in range(1, chunk):
        own[..., k] = f(own[..., k - 1], own[..., k])
    total, front = over_lanes(np.ascontiguousarray(own[..., -1].T).reshape(own.shape[1], 32 // lanes, lanes), f, zero)
    out, carry = np.empty_like(own), np.full((32 // lanes, 1), zero, x.dtype)
    for i in range(own.shape[1]):
        base = f(carry, front[i]) if carries else front[i]
        out[:, i] = f(base.reshape(32, 1), own[:, i])
        carry = f(carry, total[i][:, -1:])
    return out.reshape(x.shape)


def _scan(site: Site, e: Expr) -> Value:
    x = e.args[0]
    t, op, inner = frag_type(x), str(e.attrs["op"]), build(site, x)
    f, zero = combiner(op, t.dtype), neutral(op, t.dtype)
    wm, wn = t.warps or (site.width, 1)
    if t.form == "vec":
        chunk, one = t.chunk or 1, t.rows == 1
        if one and site.width > 1:
            raise NotSimulated("a scan of a `vec` over several warps", e.span)
        return lambda w, vals: runs(inner(w, vals), chunk, 32 if one else t.cols // chunk, f, zero, carries=one)
    if t.form in ("acc", "a") and e.attrs["axis"] == 1 and wn == 1:
        return lambda w, vals: along_columns(inner(w, vals), f, zero)
    if t.form == "acc" and e.attrs["axis"] == 0 and wm == 1:
        return lambda w, vals: along_rows(inner(w, vals), f, zero)
    raise NotSimulated(f"a scan of form `{t.form}` along axis {e.attrs['axis']}", e.span)


PURE: dict[str, Builder] = {"scan": _scan}

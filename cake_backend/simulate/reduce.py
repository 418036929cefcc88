"""Reductions: in the thread (even and odd elements in two chains), over lanes, running arguments, across the warps of a role.

The order of float additions is the emitted one: per thread the even and the odd columns are summed left to right and then added, lanes
are combined pairwise by ascending distance, warps from warp 0 on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.access import ViewAccess
from cake_backend.simulate.elementwise import Builder, Value, build, dtype, frag_type, grid
from cake_backend.simulate.faults import Abort, NotSimulated
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Step, Vals
from cake_backend.simulate.memory import Misaligned
from cake_backend.simulate.registers import held
from cake_backend.simulate.state import Warp
from cake_ir.fault import Fault
from cake_ir.program import Expr
from cake_ir.quantising import largest, least
from cake_ir.types import FragT, ListT, PairT

Combine = Callable[[Any, Any], Any]


def combiner(op: str, name: str) -> Combine:
    """One step of a reduction; float max and min ignore a NaN."""
    if op == "add":
        return np.add
    if floats.is_float(name):
        return floats.larger if op == "max" else floats.smaller
    return np.maximum if op == "max" else np.minimum


def over_lanes(x: Array, f: Combine) -> Array:
    """Combine along the last axis pairwise, as butterfly shuffles do."""
    while x.shape[-1] > 1:
        x = f(x[..., 0::2], x[..., 1::2])
    return x


def over_warp(x: Array, f: Combine) -> Array:
    """Combine (32, 1) lanes into (1, 1), the largest distance first."""
    while len(x) > 1:
        half = len(x) // 2
        x = f(x[:half], x[half:])
    return x


def _chains(x: Array, f: Combine) -> Array:
    """Left to right over axis 1 of (rows, n, 2), then the two chains together: (rows,)."""
    total = x[:, 0]
    for j in range(1, x.shape[1]):
        total = f(total, x[:, j])
    return f(total[..., 0], total[..., 1])


def _reduce(site: Site, e: Expr) -> Value:
    x = e.args[0]
    t = frag_type(x)
    op = "add" if e.op == "sum" else str(e.attrs["op"])
    f, inner, partial = combiner(op, t.dtype), build(site, x), bool(e.attrs.get("partial"))
    wm, wn = t.warps or (site.width, 1)
    if t.form == "vec" and isinstance(e.type, FragT) and e.type.form == "rowvec":
        lanes = e.type.chunk or 1
        return lambda w, vals: rows_of_vec(site, t, inner(w, vals), w, f, op, 1 if partial else lanes)
    if t.form == "vec":
        if site.width > 1 and not partial:
            raise NotSimulated("a reduction of a `vec` over several warps without scratch", e.span)
        return lambda w, vals: _vec(site, t, inner(w, vals), w, f, op) if partial else over_warp(_vec(site, t, inner(w, vals), w, f, op), f)
    if t.form in ("acc", "a") and e.attrs.get("axis") == 1:
        if wn > 1 and t.form == "acc":
            raise NotSimulated("a row reduction of a tile that several warps share along its columns", e.span)
        return lambda w, vals: rows_of_tile(inner(w, vals), f, partial)
    if t.form == "rows" and e.attrs.get("axis") == 1:
        return lambda w, vals: _straight(inner(w, vals), f)
    if t.form == "acc" and e.attrs.get("axis") == 0 and wm == 1:
        return lambda w, vals: _columns(inner(w, vals), f, partial)
    raise NotSimulated(f"a reduction of form `{t.form}` along axis {e.attrs.get('axis')}", e.span)


def rows_of_tile(x: Array, f: Combine, partial: bool) -> Array:
    """Row reduction of a warp's tile: (rows, 4) a lane of the quad, or (rows, 1) finished."""
    r, c = x.shape
    if c % 8:
        raise NotSimulated(f"a row reduction over {c} columns")
    lanes = np.ascontiguousarray(x.reshape(r, c // 8, 4, 2).transpose(0, 2, 1, 3)).reshape(r * 4, c // 8, 2)
    quad = _chains(lanes, f).reshape(r, 4)
    return quad if partial else over_lanes(quad, f)


def rows_of_vec(site: Site, t: FragT, x: Array, warp: Warp, f: Combine, op: str, lanes: int) -> Array:
    """One value a run, then over the `lanes` neighbouring lanes that share a row, the largest distance first: (32, runs)."""
    chunk = t.chunk or 1
    x = _without_ragged(site, t, x, warp, op).reshape(32, -1, chunk)
    if chunk == 1:
        runs = x[:, :, 0]
    elif chunk % 2:
        raise NotSimulated("a reduction of runs of an odd number of elements")
    else:
        runs = _chains(x.reshape(-1, chunk // 2, 2), f).reshape(32, -1)
    return across_lanes(runs, f, lanes)


def across_lanes(runs: Array, f: Combine, lanes: int) -> Array:
    """Combine groups of neighbouring lanes (axis 0), leaving the result on each of them."""
    every = np.arange(32)
    for distance in (16, 8, 4, 2, 1):
        if distance < lanes:
            runs = f(runs, runs[every ^ distance])
    return runs


def _without_ragged(site: Site, t: FragT, x: Array, warp: Warp, op: str) -> Array:
    """A thread's elements with those past the end of a `vec` replaced by the neutral one."""
    h = held(t, site.width, warp.warp)
    if not (h.rows < 0).any():
        return np.asarray(np.broadcast_to(x, h.shape))
    neutral = {"add": 0, "max": -np.inf, "min": np.inf}[op]
    if x.dtype.kind in "iu" and op != "add":
        neutral = np.iinfo(x.dtype).min if op == "max" else np.iinfo(x.dtype).max
    return np.where(h.rows < 0, x.dtype.type(neutral), x)


def _straight(x: Array, f: Combine) -> Array:
    total = x[:, 0:1]
    for j in range(1, x.shape[1]):
        total = f(total, x[:, j : j + 1])
    return total


def _columns(x: Array, f: Combine, partial: bool) -> Array:
    """Column reduction of one warp: a lane's rows (8, columns), and unless partial the eight lanes that share a column."""
    r, c = x.shape
    lanes = x.reshape(r // 8, 8, c)
    total = lanes[0]
    for i in range(1, r // 8):
        total = f(total, lanes[i])
    return total if partial else over_lanes(total.T, f).T


def _vec(site: Site, t: FragT, x: Array, warp: Warp, f: Combine, op: str) -> Array:
    """A thread's own elements: (32, 1)."""
    x = _without_ragged(site, t, x, warp, op)
    if x.shape[1] == 1:
        return x
    if x.shape[1] % 2:
        raise NotSimulated("a reduction of an odd number of elements a thread")
    return _chains(x.reshape(32, -1, 2), f)[:, None]


def _tile(x: Array, f: Combine) -> Array:
    """A thread's own elements of a warp's tile, in their order in its registers: (32, 1)."""
    r, c = x.shape
    blocks = x.reshape(r // 16, 2, 8, c // 8, 4, 2)  # (block, half, lane / 4, columns, lane % 4, parity)
    return _chains(np.ascontiguousarray(blocks.transpose(2, 4, 0, 3, 1, 5)).reshape(32, -1, 2), f)[:, None]


def _finish(site: Site, e: Expr) -> Value:
    x = build(site, e.args[0])
    t = e.args[0].type
    if isinstance(t, (PairT, ListT)):
        return x
    t = frag_type(e.args[0])
    f = combiner(t.partial or "max", t.dtype)
    if t.form == "scalar":
        return lambda w, vals: over_warp(x(w, vals), f)
    if t.form == "rowvec" and t.parent == "vec":
        lanes = t.chunk or 1 if t.partial else 1
        return lambda w, vals: across_lanes(x(w, vals), f, lanes)
    if t.form == "colvec":
        return lambda w, vals: over_lanes(np.asarray(x(w, vals)).T, f).T
    return lambda w, vals: over_lanes(np.asarray(x(w, vals)), f)


def _amax_scale(site: Site, e: Expr) -> Value:
    """The absolute maximum of each block, as a scale to the largest number of a narrow type: a float, or the next power of two."""
    x = e.args[0]
    t = frag_type(x)
    maximum = Expr("reduce", (Expr("abs", (x,), {}, t, x.span),), {"op": "max", "axis": e.attrs["axis"], "partial": False}, e.type, e.span)
    f, name = _reduce(site, maximum), str(e.attrs["dtype"])
    floor = np.array([least(name)], np.uint32).view(np.float32)[0]
    if e.attrs["kind"] == "f32":
        inverse = np.float32(1 / largest(name))
        return lambda w, vals: floats.larger(f(w, vals), floor) * inverse
    # Both largest numbers are 1.75 times a power of two: rounding the mantissa up from there leaves the exponent of the scale.
    power = np.uint32(int(largest(name) / 1.75).bit_length() - 1)

    def run(warp: Warp, vals: Vals) -> Array:
        bits = np.ascontiguousarray(floats.larger(f(warp, vals), floor)).view(np.uint32)
        return (((bits + np.uint32(0x1FFFFF)) & np.uint32(0x7F800000)) - power * np.uint32(0x800000)).view(np.float32)

    return run


def _excess(site: Site, e: Expr) -> Value:
    """Row maximum plus margin where some number of the row has a clear sign bit, else 0."""
    inner, margin = build(site, e.args[0]), np.float32(e.attrs["margin"])  # type: ignore[arg-type]  # a float by kind

    def run(warp: Warp, vals: Vals) -> Array:
        x = np.asarray(inner(warp, vals))
        over = ~(np.signbit(x) | np.isnan(x))
        highest = np.where(over, x, np.float32(0)).max(1, keepdims=True)
        return np.where(over.any(1, keepdims=True), highest + margin, np.float32(0)).astype(np.float32)

    return run


def _running(site: Site, e: Expr) -> Value:
    """argmin and argmax: the tile's own best, the lowest column on ties, merged into the running pair by a strict comparison.

    A NaN never wins. The pair is kept finished: merging in any order gives the same answer, so chains and lanes need no copies.
    """
    given = e.attrs.get("operands")
    names = [str(n) for n in given] if isinstance(given, tuple) else ["x", "base", "into"]
    args = dict(zip(names, e.args, strict=False))
    x, base, into = build(site, args["x"]), build(site, args["base"]) if "base" in args else None, build(site, args["into"])
    t = frag_type(args["x"])
    if (t.warps or (1, 1))[1] > 1 and t.form == "acc":
        raise NotSimulated(f"`{e.op}` of a tile that several warps share along its columns", e.span)
    low = e.op == "argmin"
    columns = [h.cols[0] for h in grid(site, t)]

    def run(warp: Warp, vals: Vals) -> Any:
        scores = np.asarray(x(warp, vals))
        worst = np.float32(np.inf if low else -np.inf)
        scores = np.where(np.isnan(scores), worst, scores)
        at = (scores.argmin(1) if low else scores.argmax(1))[:, None]
        best = np.take_along_axis(scores, at, 1)
        index = (columns[warp.warp][at] + (int(base(warp, vals)) if base is not None else 0)).astype(np.int32)
        value, where = into(warp, vals)
        wins = best < value if low else best > value
        return np.where(wins, best, value), np.where(wins, index, where)

    return run


PURE: dict[str, Builder] = {
    "reduce": _reduce,
    "sum": _reduce,
    "finish": _finish,
    "excess": _excess,
    "argmin": _running,
    "argmax": _running,
    "amax_scale": _amax_scale,
}


# ------------------------------------------------------------------ across the warps of a role


def _across_write(site: Site) -> Step:
    """This warp's own value into its cell of the scratch."""
    m, op = site.machine, site.op
    x = op.operands["x"]
    assert isinstance(x, Expr)
    tree, kind = site.code.trees["x"], str(op.attrs["op"])
    t = frag_type(x)
    f, inner = combiner(kind, t.dtype), build(site, tree)
    if _by_row(op.type):
        if t.warps is None or t.form not in ("acc", "rowvec"):
            raise NotSimulated("a row reduction across warps of a tile that is not split over them", op.span)
    elif t.form not in ("vec", "scalar", "acc"):
        raise NotSimulated(f"a reduction of form `{t.form}` to a scalar across warps", op.span)
    access = ViewAccess(site, "scratch")

    def step(warp: Warp, vals: Vals) -> None:
        value = np.asarray(inner(warp, vals))
        me = warp.member * site.width + warp.warp
        if _by_row(op.type):
            rows = rows_of_tile(value, f, False) if t.form == "acc" else over_lanes(value, f)
            cells = access.cells(warp, vals, ("across row", me), np.full((1, 1), me), held(frag_of(op.type), site.width, warp.warp).rows.T)
            access.write(warp, cells, floats.encode(rows.T, t.dtype))
            return
        own = _vec(site, t, value, warp, f, kind) if t.form == "vec" else _tile(value, f) if t.form == "acc" else value
        lane = over_warp(own, f)
        cells = access.cells(warp, vals, ("across", me), np.zeros((1, 1), np.intp), np.full((1, 1), me))
        access.write(warp, cells, floats.encode(lane, t.dtype))

    try:
        m.placement.table(access.view, 0)
    except Misaligned as why:
        raise Abort(Fault("X015", f"`lm.reduce` over a role uses a view that has no layout, {why}", op.spans.get("scratch", op.span))) from why
    return step


def _across_read(site: Site) -> Step:
    """All warps' values, combined from warp 0 on, into the result."""
    m, op = site.machine, site.op
    x = op.operands["x"]
    assert isinstance(x, Expr) and site.result is not None
    name, warps = site.result, m.program.roles[str(op.attrs["across"])].warps
    f, d = combiner(str(op.attrs["op"]), dtype(x)), dtype(x)
    access = ViewAccess(site, "scratch")
    split = frag_type(x).warps

    def step(warp: Warp, vals: Vals) -> None:
        if _by_row(op.type):
            wm = split[0] if split else 1
            mates = [w for w in range(warps) if w % wm == warp.warp % wm]
            rows = held(frag_of(op.type), site.width, warp.warp).rows.T
            cells = access.cells(warp, vals, ("across rows", warp.warp), np.array(mates)[:, None], rows)
            every = floats.decode(access.read(warp, cells), d)
            total = every[0]
            for row in every[1:]:
                total = f(total, row)
            m.write_place(warp, name, total[:, None], op)
            return
        cells = access.cells(warp, vals, "across all", np.zeros((1, 1), np.intp), np.arange(warps)[None, :])
        every = floats.decode(access.read(warp, cells), d)
        total = every[:, 0:1]
        for i in range(1, warps):
            total = f(total, every[:, i : i + 1])
        m.write_place(warp, name, total, op)

    return step


def _by_row(t: object) -> bool:
    return isinstance(t, FragT) and t.form == "rowvec"


def frag_of(t: object) -> FragT:
    assert isinstance(t, FragT)
    return t


VALUES: dict[str, tuple[Callable[[Site], Step], ...]] = {"lm.reduce_across": (_across_write, _across_read)}

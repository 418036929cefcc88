"""Pure expressions over fragments, built once an operation into functions of a warp and an event's values.

Values follow the emitted code: float32 arithmetic, a product that meets a sum fused (the left one if both could be), rounding at casts
and after every operation on a narrow type, `max` and `min` that ignore a NaN, IEEE specials everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.faults import NotSimulated
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Vals
from cake_backend.simulate.registers import TILES, Held, held, regrid
from cake_backend.simulate.state import Warp
from cake_ir.program import Expr
from cake_ir.types import FragT, PairT, ScalarT, SlotT

Value = Callable[[Warp, Vals], Any]
Builder = Callable[[Site, Expr], Value]


def rank(t: object) -> int:
    """0 for a uniform value, 1 for one value a row or a column, 2 for a tile or vec."""
    if not isinstance(t, FragT):
        return 0
    return {"scalar": 0, "rowvec": 1, "colvec": 1}.get(t.form, 2)


def frag_type(e: Expr) -> FragT:
    """The fragment type of an expression."""
    if not isinstance(e.type, FragT):
        raise NotSimulated(f"`{e.op}` of {e.type}", e.span)
    return e.type


def grid(site: Site, t: FragT) -> list[Held]:
    """What each warp of the member holds of a fragment."""
    return [held(t, site.width, w) for w in range(site.width)]


def build(site: Site, e: Expr) -> Value:
    """The function that evaluates an expression."""
    from cake_backend.simulate.table import PURE

    make = PURE.get(e.op)
    if make is None:
        raise NotSimulated(f"`{e.op}` on fragments", e.span)
    return make(site, e)


def literal_as(e: Expr, other: Expr) -> Expr:
    """A literal takes the dtype of what it meets."""
    d = dtype(other)
    if e.op == "const" and dtype(e) != d and d != "bool":
        return Expr(e.op, e.args, e.attrs, ScalarT(d), e.span)
    return e


def dtype(e: Expr) -> str:
    return e.type.dtype if isinstance(e.type, (FragT, ScalarT)) else "i32"


# ------------------------------------------------------------------ leaves


def _const(site: Site, e: Expr) -> Value:
    value: Any = floats.compute_dtype(dtype(e))(e.attrs["value"]) if isinstance(e.attrs["value"], (int, float)) else e.attrs["value"]
    return lambda warp, vals: value


def _dyn(site: Site, e: Expr) -> Value:
    i = int(e.attrs["i"])  # type: ignore[call-overload]  # positions are integers
    if isinstance(e.type, SlotT):
        return lambda warp, vals: vals[i]
    kind = floats.compute_dtype(dtype(e))
    if not np.issubdtype(kind, np.integer):
        return lambda warp, vals: kind(vals[i])
    bits = 8 * np.dtype(kind).itemsize

    def number(warp: Warp, vals: Vals) -> Any:
        v = vals[i]
        try:
            return kind(v)
        except OverflowError:  # registers wrap
            return np.asarray(v & ((1 << bits) - 1), f"u{bits // 8}").astype(kind)[()]

    return number


def _var(site: Site, e: Expr) -> Value:
    name, op, read = str(e.attrs["name"]), site.op, site.machine.read_place
    if isinstance(e.type, FragT) and e.type.stages > 1:
        return lambda warp, vals: list(warp.regs[name])
    return lambda warp, vals: read(warp, name, 0, op)


def _item(site: Site, e: Expr) -> Value:
    pair, k = build(site, e.args[0]), int(e.attrs["k"])  # type: ignore[call-overload]  # 0 or 1
    return lambda warp, vals: pair(warp, vals)[k]


def _stage(site: Site, e: Expr) -> Value:
    inner, slot = e.args
    if inner.op != "var":
        raise NotSimulated("a stage of an unnamed fragment", e.span)
    name, at, stages = str(inner.attrs["name"]), build(site, slot), frag_type(inner).stages
    read, op = site.machine.read_place, site.op
    return lambda warp, vals: read(warp, name, int(at(warp, vals)) % stages, op)


def _slice(site: Site, e: Expr) -> Value:
    inner, lo = build(site, e.args[0]), build(site, e.args[1])
    have, want = grid(site, frag_type(e.args[0])), grid(site, frag_type(e))
    along_rows = e.op == "frag_rows"

    def run(warp: Warp, vals: Vals) -> Array:
        at, h, w = int(lo(warp, vals)), have[warp.warp], want[warp.warp]
        return regrid(inner(warp, vals), h, w.rows + at * along_rows, w.cols + at * (not along_rows), "a slice", e.span)

    if frag_type(e).form not in TILES:
        raise NotSimulated("a slice of this fragment form", e.span)
    return run


def _iota(site: Site, e: Expr) -> Value:
    t, like = frag_type(e), frag_type(e.args[0])
    base = build(site, e.args[1]) if len(e.args) > 1 else None
    along_rows = e.attrs["axis"] == 0 and not (like.form == "vec" and like.rank == 1)
    parts = grid(site, t)
    where = [(h.rows if along_rows else h.cols).astype(np.int32) for h in parts]
    where = [np.broadcast_to(x, h.shape) for x, h in zip(where, parts, strict=True)]
    if base is None:
        return lambda warp, vals: where[warp.warp]
    return lambda warp, vals: where[warp.warp] + np.int32(base(warp, vals))


def _in_bounds(site: Site, e: Expr) -> Value:
    rows, cols = build(site, e.args[1]), build(site, e.args[2])
    parts = grid(site, frag_type(e))
    return lambda warp, vals: (parts[warp.warp].rows < rows(warp, vals)) & (parts[warp.warp].cols < cols(warp, vals))


# ------------------------------------------------------------------ arithmetic


_FLOAT: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": floats.div,
    "max": floats.larger,
    "min": floats.smaller,
}
_INT: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "floordiv": np.floor_divide, "mod": np.mod, "bitand": np.bitwise_and,
    "bitor": np.bitwise_or, "bitxor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift,
}  # fmt: skip
_BOOL: dict[str, Callable[..., Any]] = {"bitand": np.logical_and, "bitor": np.logical_or, "bitxor": np.not_equal}
_ANY: dict[str, Callable[..., Any]] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
_UNARY: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "not": np.logical_not, "abs": np.abs, "exp2": floats.exp2, "exp2_fma": floats.exp2_fma, "log2": floats.log2, "exp": floats.exp, "log": floats.log,
    "sqrt": floats.sqrt, "rsqrt": floats.rsqrt, "rcp": floats.rcp, "tanh": floats.tanh, "sigmoid": floats.sigmoid, "silu": floats.silu,
    "gelu": floats.gelu, "erf": floats.erf,
}  # fmt: skip


def _meet(site: Site, e: Expr) -> None:
    """Refuse the mixtures whose threads have nothing in common."""
    forms = {a.type.form for a in e.args if isinstance(a.type, FragT)}
    if "vec" in forms and "colvec" in forms:
        raise NotSimulated(f"`{e.op}` of a vec with a column vector", e.span)


def fitted(site: Site, e: Expr, t: object) -> Value:
    """An operand of an operation with result type `t`: a row vector of a `vec` is repeated over the elements of its runs."""
    f, u = build(site, e), e.type
    if isinstance(u, FragT) and isinstance(t, FragT) and u.form == "rowvec" and u.parent == "vec" and t.form == "vec":
        run = t.chunk or 1
        return lambda warp, vals: np.repeat(f(warp, vals), run, axis=1)
    return f


def _narrow(t: FragT | ScalarT, f: Value) -> Value:
    """Round the result to a narrow float type."""
    name = t.dtype
    if not floats.is_float(name) or name == "f32":
        return f
    return lambda warp, vals: floats.rounded(f(warp, vals), name)


def _binary(site: Site, e: Expr) -> Value:
    _meet(site, e)
    left, right = literal_as(e.args[0], e.args[1]), literal_as(e.args[1], e.args[0])
    kind = dtype(left) if e.args[0].op != "const" else dtype(right)
    family = _BOOL if kind == "bool" else _FLOAT if floats.is_float(kind) else _INT
    f = _ANY.get(e.op) or (np.divide if e.attrs.get("exact") else family.get(e.op))
    if f is None:
        raise NotSimulated(f"`{e.op}` on {kind} fragments", e.span)
    if e.op in ("add", "sub") and floats.is_float(kind):
        fused = _fused(site, e, left, right)
        if fused is not None:
            return fused
    a, b = fitted(site, left, e.type), fitted(site, right, e.type)
    plain: Value = lambda warp, vals: f(a(warp, vals), b(warp, vals))  # noqa: E731 - one of three shapes of the same function
    return _narrow(frag_type(e), plain) if e.op in ("add", "sub", "mul", "div") else plain


def _fused(site: Site, e: Expr, a: Expr, b: Expr) -> Value | None:
    """a*b + c and its kin with one rounding, where the product has the rank of the sum and is f32; None where neither side is one."""
    product = next(
        (
            x
            for x in (a, b)
            if x.op == "mul" and rank(x.type) == rank(e.type) and isinstance(x.type, FragT) and x.type.dtype in ("f32", "tf32")
        ),
        None,
    )
    if product is None:
        return None
    u, v = (fitted(site, literal_as(product.args[i], product.args[1 - i]), e.type) for i in (0, 1))
    rest = fitted(site, b if product is a else a, e.type)
    if e.op == "add":
        return _narrow(frag_type(e), lambda w, vals: floats.fma(u(w, vals), v(w, vals), rest(w, vals)))
    if product is a:
        return _narrow(frag_type(e), lambda w, vals: floats.fma(u(w, vals), v(w, vals), np.negative(rest(w, vals))))
    return _narrow(frag_type(e), lambda w, vals: floats.fma(np.negative(u(w, vals)), v(w, vals), rest(w, vals)))


def _unary(site: Site, e: Expr) -> Value:
    f, x = _UNARY[e.op], build(site, e.args[0])
    plain: Value = lambda warp, vals: f(x(warp, vals))  # noqa: E731 - rounded below or not
    return plain if e.op in ("neg", "abs", "not") else _narrow(frag_type(e), plain)


def _fma(site: Site, e: Expr) -> Value:
    a, b, c = (fitted(site, literal_as(x, e), e.type) for x in e.args)
    return _narrow(frag_type(e), lambda w, vals: floats.fma(a(w, vals), b(w, vals), c(w, vals)))


def _where(site: Site, e: Expr) -> Value:
    _meet(site, e)
    cond, x, y = e.args
    c, a, b = fitted(site, cond, e.type), fitted(site, literal_as(x, e), e.type), fitted(site, literal_as(y, e), e.type)
    return lambda warp, vals: np.where(c(warp, vals), a(warp, vals), b(warp, vals))


def _cast(site: Site, e: Expr) -> Value:
    x, t = e.args[0], frag_type(e)
    f = build(site, x)
    have, mode = dtype(x), str(e.attrs.get("round") or "rn")
    floats.numpy_dtype(t.dtype)
    if isinstance(x.type, FragT) and x.type.form != t.form:
        src, dst = grid(site, x.type), grid(site, t)
        what = f"a cast from form `{x.type.form}` to `{t.form}`"
        return lambda w, vals: floats.converted(
            regrid(f(w, vals), src[w.warp], dst[w.warp].rows, dst[w.warp].cols, what, e.span), have, t.dtype, mode
        )
    return lambda w, vals: floats.converted(f(w, vals), have, t.dtype, mode)


def _transpose(site: Site, e: Expr) -> Value:
    x, t = e.args[0], frag_type(e)
    f, src, dst = build(site, x), grid(site, frag_type(x)), grid(site, t)
    return lambda w, vals: regrid(f(w, vals), src[w.warp], dst[w.warp].cols, dst[w.warp].rows, "a transposition", e.span).T


def compute(site: Site) -> Value:
    """The step of a `compute`: evaluate and bind."""
    e = site.op.operands["value"]
    assert isinstance(e, Expr)
    tree = site.code.trees.get("value", e)
    name, op, m = site.result, site.op, site.machine
    assert name is not None
    if tree.op in ("frag", "rowvec", "colvec") and tree.attrs.get("init") is None:
        t = tree.type

        def declare(warp: Warp, vals: Vals) -> None:
            # No code is emitted: registers in flight stay what they are.
            if not any(key[0] == name for key in warp.held_back):
                warp.regs[name] = m.fresh(warp, t)
                warp.unwritten.add(name)

        return declare
    f = build(site, tree)
    t = op.type
    if isinstance(t, FragT) and t.partial is None and t.stages == 1:
        shapes = [h.shape for h in grid(site, t)]

        def bind(warp: Warp, vals: Vals) -> None:
            value = f(warp, vals)
            shape = shapes[warp.warp]
            m.write_place(warp, name, value if np.shape(value) == shape else np.array(np.broadcast_to(value, shape)), op)

        return bind

    def bind_any(warp: Warp, vals: Vals) -> None:
        m.write_place(warp, name, f(warp, vals), op)

    return bind_any


PURE: dict[str, Builder] = {
    "const": _const, "dyn": _dyn, "var": _var, "item": _item, "frag_stage": _stage, "frag_cols": _slice, "frag_rows": _slice, "iota": _iota,
    "in_bounds": _in_bounds, "where": _where, "fma": _fma, "cast": _cast, "transpose": _transpose,
    **dict.fromkeys({*_FLOAT, *_INT, *_BOOL, *_ANY}, _binary), **dict.fromkeys(_UNARY, _unary),
}  # fmt: skip

__all__ = ["PURE", "PairT", "build", "compute", "frag_type", "grid", "rank"]

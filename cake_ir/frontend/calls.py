"""Calls: operations bound against their specs, slices of views and fragments, ring positions, and the few functions on compile-time values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Edit, Fix, did_you_mean
from cake_ir.frontend import arith
from cake_ir.frontend.arith import as_expr, combine, is_const
from cake_ir.frontend.bind import bind
from cake_ir.frontend.scope import MAX_ELEMENTS, Elaboration, Named
from cake_ir.frontend.values import const_int, lift, value
from cake_ir.ops import SPECS
from cake_ir.ops.elementwise import UNARY, elementwise_type
from cake_ir.ops.spec import OpSpec
from cake_ir.program import Const, Do, Expr, Param, Pipeline, SmemPool
from cake_ir.span import Span
from cake_ir.types import I32, NONE, FragT, NoneT, ScalarT, SlotT, TmemT, ViewT

DECLARATIONS = frozenset(
    "launch assume assume_values smem tmem role pipeline barrier named_barrier turns cluster_barrier scheduler workspace zero run".split()
)
_LM = {name: spec for (on, name), spec in SPECS.items() if on == "lm"}
_METHODS = {name: spec for (on, name), spec in SPECS.items() if on == "view"}


_MATH = UNARY | {"max", "min", "where", "fma", "div"}


def known_calls() -> list[str]:
    """Every name that `lm.` accepts as a call."""
    return sorted(set(_LM) | set(_FUNCTIONS) | DECLARATIONS | UNARY | {"step", "at", "range", "static_range", "tiles", "where", "fma", "max", "min"})


def call(el: Elaboration, node: ast.Call) -> Any:
    """Evaluate a call. Operations with effects append a statement and give back the name of their result."""
    func = node.func
    if isinstance(func, ast.Name):
        return _builtin(el, node, func)
    if not isinstance(func, ast.Attribute):
        el.fail("N006", "only operations of the language can be called", node)
    if func.attr.startswith("_"):
        el.fail("N005", "names that start with an underscore are not reachable", func)
    for k in node.keywords:
        if k.arg is None:
            el.fail("N005", "`**` unpacking is not part of the language", k.value, help="name the options")
    if isinstance(func.value, ast.Name) and func.value.id == el.receiver and el.receiver not in el.env:
        return _lm_call(el, node, func)
    if isinstance(func.value, ast.Name) and func.value.id not in el.env and func.attr in known_calls():
        span = el.span(func.value)
        el.fail("N026", f"`{func.value.id[:40]}` is not defined", func.value, help=f"operations are called on `{el.receiver}`",
                fixes=(Fix((Edit(span, el.receiver),), "likely", f"write `{el.receiver}.{func.attr}`"),))  # fmt: skip
    return _method(el, node, func)


def _lm_call(el: Elaboration, node: ast.Call, func: ast.Attribute) -> Any:
    name = func.attr
    spec = _LM.get(name)
    if spec is not None and name != "reduce_across":
        across = name == "reduce" and any(k.arg == "across" for k in node.keywords)
        return operation(el, _LM["reduce_across"] if across else spec, node, None)
    if name in _MATH:
        return _math(el, node, name)
    special = _FUNCTIONS.get(name)
    if special is not None:
        return special(el, node)
    if name in DECLARATIONS:
        el.fail("N032", f"`lm.{name}` is a declaration", node, help="declare on a line of its own, before the first role block")
    if name in ("range", "static_range", "tiles"):
        el.fail("N039", f"`lm.{name}` belongs in the head of a `for`", node)
    if name == "mma_group":
        el.fail("N039", "`lm.mma_group` opens a `with` block", node, help="write `with lm.mma_group():` around the MMAs")
    if name in _METHODS:
        el.fail("N028", f"`{name}` is a method of a view", node, help=f"write `view.{name}(..)`")
    if name in ("rows", "cols"):
        el.fail("N028", f"`{name}` is a method of a view or a fragment", node, help=f"write `view.{name}(first, number)`")
    el.fail("N028", f"`lm.{name}` is not an operation", func, help=did_you_mean(name, known_calls(), "operation"))


def operation(el: Elaboration, spec: OpSpec, node: ast.Call, receiver: Expr | None) -> Any:
    """Bind a call of `spec`, infer its type, and emit it (or, if pure, return its expression)."""
    span = el.span(node)
    bound = bind(el, spec, node, receiver)
    type_ = spec.infer(bound)
    if spec.pure:
        args = tuple(e for e in bound.operands.values() if isinstance(e, Expr))
        names = tuple(k for k, e in bound.operands.items() if isinstance(e, Expr))
        return Expr(spec.name, args, {**bound.attrs, "operands": names}, type_, span)
    if el.out is None:
        el.fail("N040", f"`{spec.spelling}` runs on a role's warps", node, help="move it into `with role:`")
    op = el.new_op(spec.name, bound.operands, bound.attrs, type_, span, bound.spans)
    if isinstance(type_, NoneT):
        el.out.append(Do(op, span))
        return Expr("none", (), {}, NONE, span)
    return el.hoist("tmp", op, span)


def _math(el: Elaboration, node: ast.Call, name: str) -> Any:
    span = el.span(node)
    if node.keywords:
        el.fail("N044", f"`lm.{name}` takes no keyword", node.keywords[0].value)
    operands = tuple(value(el, a) for a in node.args)
    want = {"where": 3, "fma": 3, "div": 2}.get(name, 1)
    if name in ("max", "min"):
        if len(operands) < 2:
            el.fail("N044", f"`lm.{name}` takes two or more operands", node)
        result = operands[0]
        for other in operands[1:]:
            result = combine(el, name, (result, other), span)
        return result
    if len(operands) != want:
        el.fail("N044", f"`lm.{name}` takes {want} operand{'s' if want > 1 else ''}, found {len(operands)}", node, expected=want, found=len(operands))
    args = tuple(as_expr(el, v, el.span(a)) for v, a in zip(operands, node.args, strict=True))
    exact: dict[str, Const] = {"exact": True} if name == "div" else {}  # `/` may use an approximate reciprocal
    if any(isinstance(a.type, FragT) for a in args):
        return Expr(name, args, exact, elementwise_type(name, args, span), span)
    for a in args:
        if not isinstance(a.type, ScalarT):
            el.fail("N021", f"{a.type} is not a number", a.span)
    dtype = next((a.type.dtype for a in args if isinstance(a.type, ScalarT) and a.op != "const"), "f32")
    if (name in UNARY - {"abs"} or name in ("fma", "div")) and DTYPES[dtype].kind in ("int", "uint", "bool"):
        el.fail("D003", f"`{name}` works on floating point, found {dtype}", span, help="convert with `lm.cast(x, lm.f32)`")
    if name == "where":
        return Expr("select", args, {}, args[1].type if args[1].op != "const" else args[2].type, span)
    return Expr(name, args, exact, args[0].type, span)


# ------------------------------------------------------------------ ring positions and scalars


def _ring(el: Elaboration, node: ast.Call, name: str) -> str:
    if len(node.args) != 1 or node.keywords:
        el.fail("N044", f"`lm.{name}` takes a ring", node)
    v = value(el, node.args[0])
    if not (isinstance(v, Named) and isinstance(v.record, Pipeline)):
        el.fail("N045", f"`lm.{name}` takes a ring", node.args[0], help=did_you_mean("", el.of_kind(Pipeline), "ring"))
    if el.role is None:
        el.fail("N040", f"`lm.{name}` belongs to a role", node)
    return v.record.name


def _step(el: Elaboration, node: ast.Call) -> Expr:
    """Stepping is an effect: it happens once, where it stands, however often the operation that uses the slot mentions it."""
    ring, span = _ring(el, node, "step"), el.span(node)
    return el.hoist("slot", Expr("step", (), {"ring": ring}, SlotT(ring), span), span)


def _at(el: Elaboration, node: ast.Call) -> Expr:
    return Expr("at", (), {"ring": (ring := _ring(el, node, "at"))}, SlotT(ring), el.span(node))


def _cdiv(el: Elaboration, node: ast.Call) -> Any:
    if len(node.args) != 2 or node.keywords:
        el.fail("N044", "`lm.cdiv` takes two integers", node)
    return arith.cdiv(el, value(el, node.args[0]), value(el, node.args[1]), el.span(node))


def _uniform(op: str) -> Callable[[Elaboration, ast.Call], Expr]:
    def build(el: Elaboration, node: ast.Call) -> Expr:
        axis = value(el, node.args[0]) if node.args else None
        if len(node.args) > 1 or node.keywords or not (axis is None or isinstance(axis, str)):
            el.fail("N044", f"`lm.{op}` takes at most an axis name", node)
        return Expr(op, (), {"axis": axis}, I32, el.span(node))

    return build


_FUNCTIONS: dict[str, Callable[[Elaboration, ast.Call], Any]] = {
    "step": _step, "at": _at, "cdiv": _cdiv, "cta_rank": _uniform("cta_rank"), "cluster_size": _uniform("cluster_size"), "cta_id": _uniform("cta_id"),
}  # fmt: skip


# ------------------------------------------------------------------ methods


def _method(el: Elaboration, node: ast.Call, func: ast.Attribute) -> Any:
    base, name = value(el, func.value), func.attr
    if isinstance(base, Named) and isinstance(base.record, SmemPool):
        el.fail("N032", f"`{base.record.name}.{name}` is a declaration", node, help="declare views on lines of their own, before the first role block")
    if isinstance(base, Named) and isinstance(base.record, Param):
        return _extent(el, node, base.record, name)
    e = lift(el, base, el.span(func.value))
    t = e.type
    if isinstance(t, SlotT) and name == "prev":
        back = const_int(el, node.args[0], "the distance") if node.args else 1
        if back < 0:
            el.fail("N046", f"`prev({back})` looks forward", node)
        return Expr("prev", (e,), {"back": back}, t, el.span(node))
    if isinstance(t, (ViewT, FragT, TmemT)) and name in ("rows", "cols") and not (isinstance(t, TmemT) and name == "rows"):
        return _slice(el, node, e, name)
    if isinstance(t, ViewT):
        if name in _METHODS:
            return operation(el, _METHODS[name], node, e)
        el.fail("N028", f"a view has no operation `{name}`", func, help=did_you_mean(name, [*_METHODS, "rows", "cols"], "operation"))
    if isinstance(t, FragT) and name in _METHODS:
        el.fail("N028", f"`{name}` is a method of a view, this is {t}", func)
    el.fail("N028", f"{t} has no operation `{name}`", func)


def _extent(el: Elaboration, node: ast.Call, tensor: Param, name: str) -> Any:
    if name != "extent":
        el.fail("N028", f"tensor `{tensor.name}` has no operation `{name}`", node, help="tensors are read and written by `view.tma_load`, `lm.load` and the like")
    dim = const_int(el, node.args[0], "a dimension") if len(node.args) == 1 else -1
    if not 0 <= dim < tensor.rank:
        el.fail("N022", f"`{tensor.name}` has dimensions 0 to {tensor.rank - 1}, outermost first", node)
    if tensor.extents and isinstance(tensor.extents[dim], int):
        return tensor.extents[dim]
    return Expr("extent", (), {"tensor": tensor.name, "dim": dim}, I32, el.span(node))


def _slice(el: Elaboration, node: ast.Call, e: Expr, name: str) -> Expr:
    given = {k.arg: k.value for k in node.keywords}
    for param, arg in zip(("lo", "n"), node.args, strict=False):
        given[param] = arg
    if set(given) != {"lo", "n"} or len(node.args) > 2:
        el.fail("N044", f"`.{name}` takes (lo, n)", node)
    n, lo_value = const_int(el, given["n"], "the extent of a slice"), value(el, given["lo"])
    lo = as_expr(el, lo_value, el.span(given["lo"]))
    if not isinstance(lo.type, ScalarT) or n < 1:
        el.fail("N022", f"`.{name}(lo, n)` takes a number and a positive extent", node)
    if lo.type.dtype in DTYPES and not DTYPES[lo.type.dtype].is_integer:
        el.fail("N024", f"`.{name}(lo, n)` starts at an element, found {lo.type}", given["lo"], help="convert with `lm.cast(x, lm.i32)`")
    t, span = e.type, el.span(node)
    if isinstance(t, TmemT):
        _inside(el, node, lo_value, n, t.cols, "columns")
        return Expr("tmem_cols", (e, lo), {"n": n}, TmemT(t.tmem, t.lanes, n, t.dtype), span)
    if isinstance(t, FragT):
        _inside(el, node, lo_value, n, t.rows if name == "rows" else t.cols, name)
        return Expr(f"frag_{name}", (e, lo), {"n": n}, t.with_(rows=n) if name == "rows" else t.with_(cols=n), span)
    assert isinstance(t, ViewT)
    if t.rank == 1 and name == "rows":
        at = el.source.span(node.func)
        name_only = Span(at.end_line, at.end_column - len(name), at.end_line, at.end_column)
        el.fail("D021", "a 1-D view is sliced with `.cols(lo, n)`", node, fixes=(Fix((Edit(name_only, "cols"),), "certain", "write `.cols`"),))
    stored = name if not t.transposed else {"rows": "cols", "cols": "rows"}[name]
    _inside(el, node, lo_value, n, t.rows if stored == "rows" else t.cols, name)
    rows, cols = (n, t.cols) if stored == "rows" else (t.rows, n)
    return Expr(stored, (e, lo), {"n": n}, ViewT(t.view, rows, cols, t.dtype, t.transposed, t.staged, t.rank), span)


def _inside(el: Elaboration, node: ast.Call, lo: Any, n: int, extent: int, what: str) -> None:
    if n > extent or (is_const(lo) and (lo < 0 or lo + n > extent)):
        at = f" from {lo}" if is_const(lo) else ""
        help = f"take at most {extent - lo} {what} from {lo}" if is_const(lo) and 0 <= lo < extent else f"the {what} are numbered 0 to {extent - 1}"
        el.fail("N047", f"{n} {what}{at} reach past the {extent} there are", node, help=help, expected=extent, found=(lo + n if is_const(lo) else n))


# ------------------------------------------------------------------ compile-time functions


def _builtin(el: Elaboration, node: ast.Call, func: ast.Name) -> Any:
    if func.id in el.env:
        el.fail("N006", f"`{func.id}` cannot be called", node)
    if func.id not in ("min", "max", "sum", "len", "abs", "range"):
        el.fail("N006", f"`{func.id}` is not callable here", node, help="call operations as `lm.name(..)`; min max sum len abs range work on compile-time values")
    if node.keywords:
        el.fail("N044", f"`{func.id}` takes no keyword here", node.keywords[0].value)
    args = [value(el, a) for a in node.args]
    if not all(is_const(a) for a in args):
        el.fail("N024", f"`{func.id}` works on compile-time values", node, help=f"write `lm.{func.id}(..)`" if func.id in ("min", "max", "abs") else "")
    if func.id == "range":
        if not 1 <= len(args) <= 3 or not all(isinstance(a, int) for a in args) or (len(args) == 3 and args[2] == 0):
            el.fail("N044", "`range` takes one to three integers", node)
        numbers = range(*args)
        if len(numbers) > MAX_ELEMENTS:
            el.fail("N020", f"`range` has {len(numbers)} items, at most {MAX_ELEMENTS} are allowed", node)
        return tuple(numbers)
    items = args[0] if len(args) == 1 and isinstance(args[0], tuple) else tuple(args)
    try:
        v = {"min": min, "max": max, "sum": sum, "len": len, "abs": lambda x: abs(x[0])}[func.id](items)  # type: ignore[operator]  # constants of one kind
    except (TypeError, ValueError, IndexError):
        el.fail("N022", f"`{func.id}` does not apply to these values", node)
    return arith.bounded(el, v, el.span(node))



"""Arithmetic that is folded at compile time, within bounds, or becomes an expression where an operand is known only at run time."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any

from cake_ir.dtypes import DTYPES
from cake_ir.frontend.scope import MAX_ELEMENTS, DTypeName, Elaboration
from cake_ir.ops.elementwise import COMPARE, LOGIC, common_dtype, elementwise_type
from cake_ir.program import Expr
from cake_ir.span import Span
from cake_ir.types import BOOL, F32, I32, FragT, ScalarT, SlotT, Type

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor", ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
COMPARISON: dict[type[ast.cmpop], str] = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "floordiv": operator.floordiv,
    "mod": operator.mod, "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor, "shl": operator.lshift,
    "shr": operator.rshift, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
    "ne": operator.ne, "min": min, "max": max,
}  # fmt: skip


EXACT: dict[str, Callable[[int, int], int]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
"""Operations on integers that always have a result."""


def is_const(v: Any) -> bool:
    """Whether a value is known at compile time (a number, string, None, dtype, or a tuple of such)."""
    if isinstance(v, (int, float, str)) or v is None:
        return True
    return isinstance(v, tuple) and all([is_const(x) for x in v])


def elements(v: Any) -> int:
    """How many items a value has, those of the tuples in it counted."""
    return max(1, sum([elements(x) for x in v])) if isinstance(v, tuple) else 1


def gathered(el: Elaboration, items: Iterable[Any], span: Span) -> tuple[Any, ...]:
    """The tuple of some values; N020 for too many, those of tuples in them counted: a pair of a pair of a pair doubles with every name."""
    out, total = [], 0
    for item in items:
        out.append(item)
        total += elements(item) if type(item) is tuple else 1
        if total > MAX_ELEMENTS:
            el.fail("N020", f"a tuple has more than {MAX_ELEMENTS} items, those of tuples in it counted", span)
    return tuple(out)


def as_expr(el: Elaboration, v: Any, span: Span) -> Expr:
    """`v` as an expression: itself, or a constant of the type that its Python type names."""
    if isinstance(v, Expr):
        return v
    if isinstance(v, bool):
        return Expr("const", (), {"value": v}, BOOL, span)
    if isinstance(v, int):
        return Expr("const", (), {"value": v}, I32 if -(2**31) <= v < 2**31 else ScalarT("i64"), span)
    if isinstance(v, float):
        return Expr("const", (), {"value": v}, F32, span)
    what = "a dtype" if isinstance(v, DTypeName) else "a string" if isinstance(v, str) else "a tuple" if isinstance(v, tuple) else "None" if v is None else f"{_kind(v)}"
    read = "read it: `lm.load(X, coords=..)`, or one element with `lm.ld(X, i)`" if what == "a tensor" else ""
    el.fail("N021", f"{what} is not a number here", span, help=read)


def _kind(v: Any) -> str:
    record = getattr(v, "record", v)
    return {"SmemPool": "a pool", "View": "a view", "Role": "a role", "Pipeline": "a ring", "Barrier": "a barrier", "NamedBarrier": "a named barrier",
            "Turns": "a turn", "Scheduler": "a scheduler", "Param": "a tensor", "Tmem": "tensor memory"}.get(type(record).__name__, "this")  # fmt: skip


def fold(el: Elaboration, name: str, a: Any, b: Any, span: Span) -> Any:
    """Evaluate `name` on compile-time values; N022 for a division by zero, an overflow or operands that do not fit."""
    if name == "pow":
        return _power(el, a, b, span)
    if isinstance(a, tuple) or isinstance(b, tuple):
        if name == "add" and isinstance(a, tuple) and isinstance(b, tuple) and elements(a) + elements(b) <= MAX_ELEMENTS:
            return a + b
        if name == "mul" and isinstance(a, tuple) and isinstance(b, int) and elements(a) * max(b, 0) <= MAX_ELEMENTS:
            return a * b
        if name in ("eq", "ne"):
            return _FOLD[name](a, b)
        if name in ("add", "mul"):
            el.fail("N022", f"a tuple would have more than {MAX_ELEMENTS} items, or the other operand does not fit", span)
        el.fail("N022", f"`{name}` does not apply to a tuple", span)
    if name in ("eq", "ne"):
        return _FOLD[name](a, b)
    if not all(isinstance(x, (int, float, bool)) for x in (a, b)):
        el.fail("N022", f"`{name}` needs numbers", span)
    if name in ("shl", "shr") and not (isinstance(b, int) and 0 <= b <= 62):
        el.fail("N022", "a shift is by 0 to 62 bits", span)
    try:
        v = _FOLD[name](a, b)
    except ZeroDivisionError:
        el.fail("N022", "division by zero", span)
    except (OverflowError, TypeError, ValueError):
        el.fail("N022", f"`{name}` does not apply to these values", span)
    return bounded(el, v, span)


def bounded(el: Elaboration, v: Any, span: Span) -> Any:
    """`v`, refused (N022) if it is an integer past 64 bits."""
    if isinstance(v, int) and v.bit_length() > 63:
        el.fail("N022", "the value does not fit 64 bits", span)
    return v


def _power(el: Elaboration, a: Any, b: Any, span: Span) -> Any:
    if not (isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(b) <= 64 and abs(a) < 2**32):
        el.fail("N022", "`**` takes compile-time numbers, the exponent at most 64", span)
    try:
        v = a**b
    except (OverflowError, ZeroDivisionError):
        el.fail("N022", "`**` overflows", span)
    if isinstance(v, complex):
        el.fail("N022", "`**` gives a complex number", span)
    return bounded(el, v, span)


def combine(el: Elaboration, name: str, operands: tuple[Any, ...], span: Span) -> Any:
    """`name` over compile-time values, uniform scalars or fragments."""
    if len(operands) == 2 and not (isinstance(operands[0], Expr) or isinstance(operands[1], Expr)) and is_const(operands[0]) and is_const(operands[1]):
        return fold(el, name, operands[0], operands[1], span)
    args = tuple([v if isinstance(v, Expr) else as_expr(el, v, span) for v in operands])
    if any([isinstance(a.type, FragT) for a in args]):
        if name == "pow":
            el.fail("N023", "`**` does not exist for fragments", span, help="multiply, or use `lm.exp2`")
        _divisible(el, name, args, span)
        return Expr(name, args, {}, elementwise_type(name, args, span), span)
    for a in args:
        if not isinstance(a.type, ScalarT):
            el.fail("N021", f"{a.type} is not a number", a.span, help="use `.index` for the slot's number" if isinstance(a.type, SlotT) else "")
    return scalar(el, name, args, span)


def scalar(el: Elaboration, name: str, args: tuple[Expr, ...], span: Span) -> Expr:
    """A uniform scalar expression of `name`, typed; `/` on integers is refused."""
    if name == "pow":
        el.fail("N023", "`**` is for compile-time values", span)
    dtype = common_dtype(name, args, span)
    if name in COMPARE:
        return Expr(name, args, {}, BOOL, span)
    if name in _PLAIN:  # of numbers of any kind, as most are
        return Expr(name, args, {}, _SCALARS.get(dtype) or ScalarT(dtype), span)
    if name in LOGIC or (name in ("bitand", "bitor") and dtype == "bool"):
        if dtype != "bool":
            el.fail("N023", f"`{name}` combines truth values, found {dtype}", span, help="compare first: `x != 0`")
        return Expr({"bitand": "and", "bitor": "or"}.get(name, name), args, {}, BOOL, span)
    if name in ("floordiv", "mod", "bitand", "bitor", "bitxor", "shl", "shr") and DTYPES[dtype].kind in ("float", "scale"):
        el.fail("D003", f"`{name}` works on integers, found {dtype}", span, help="convert with `lm.cast(x, lm.i32)`")
    _divisible(el, name, args, span)
    if name in ("shl", "shr") and args[1].op == "const" and not 0 <= int(args[1].attrs["value"]) <= 62:  # type: ignore[call-overload]  # an integer beside integers
        el.fail("N022", "a shift is by 0 to 62 bits", span)
    if name == "div" and dtype in ("i32", "i64", "u32"):
        el.fail("N023", "`/` on integers", span, help="use `//`, or `lm.cdiv(a, b)` to round up")
    return Expr(name, args, {}, ScalarT(dtype), span)


def _divisible(el: Elaboration, name: str, args: tuple[Expr, ...], span: Span) -> None:
    if name in ("floordiv", "mod") and args[1].op == "const" and not args[1].attrs["value"]:
        el.fail("N022", "division by zero", span)


_PLAIN = frozenset({"add", "sub", "mul", "min", "max"})
_SCALARS = {t.dtype: t for t in (I32, F32)}


def negate(el: Elaboration, v: Any, span: Span) -> Any:
    if isinstance(v, (int, float)) and not isinstance(v, bool):
        return -v
    e = as_expr(el, v, span)
    t: Type = elementwise_type("neg", (e,), span) if isinstance(e.type, FragT) else e.type
    if not isinstance(t, (FragT, ScalarT)):
        el.fail("N021", f"{e.type} is not a number", span)
    return Expr("neg", (e,), {}, t, span)


def cdiv(el: Elaboration, a: Any, b: Any, span: Span) -> Any:
    """ceil(a / b) for integers; folded where both are known."""
    if is_const(b) and isinstance(b, (int, float)) and b <= 0:
        el.fail("N022", f"`lm.cdiv` by {b}", span)
    for x in (a, b):
        if is_const(x) and (not isinstance(x, int) or isinstance(x, bool)):
            el.fail("N022", "`lm.cdiv` takes integers", span)
    if is_const(a) and is_const(b):
        if not (isinstance(a, int) and isinstance(b, int)):
            el.fail("N022", "`lm.cdiv` takes integers", span)
        return -(-a // b)
    return scalar(el, "cdiv", (as_expr(el, a, span), as_expr(el, b, span)), span)

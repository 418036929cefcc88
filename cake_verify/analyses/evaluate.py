"""The value of a uniform scalar expression for given arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from cake_ir.program import Expr, Program
from cake_ir.walk.code import BOUNDED

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "floordiv": operator.floordiv, "mod": operator.mod,
    "min": min, "max": max, "cdiv": lambda a, b: -(-a // b), "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "and": lambda a, b: a and b, "or": lambda a, b: a or b, "bitand": operator.and_,
    "bitor": operator.or_, "bitxor": operator.xor, "shl": BOUNDED["shl"], "shr": operator.rshift,
}  # fmt: skip


def evaluate(program: Program, e: Expr, args: Mapping[str, Any]) -> Any:
    """The value of `e`, None where an argument is not given, a division is by zero, or the expression needs more than arguments."""
    if e.op == "const":
        return e.attrs["value"]
    if e.op == "param":
        return args.get(str(e.attrs["name"]))
    if e.op == "var" and e.attrs["name"] in program.lets:
        return evaluate(program, program.lets[str(e.attrs["name"])].value, args)
    return apply(e.op, [evaluate(program, a, args) for a in e.args])


def apply(op: str, values: list[Any]) -> Any:
    """`op` of evaluated operands; None where one of them is, or the operation is none of uniform scalars."""
    if not values or any(v is None for v in values):
        return None
    if op == "select":
        return values[1] if values[0] else values[2]
    if op in ("neg", "not"):
        return -values[0] if op == "neg" else not values[0]
    if op not in BINARY or len(values) != 2:
        return None
    try:
        return BINARY[op](*values)
    except (ArithmeticError, ValueError):
        return None

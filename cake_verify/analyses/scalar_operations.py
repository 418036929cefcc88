"""The operations of uniform scalars on numbers that are known."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from cake_ir.walk.code import BOUNDED

LARGE = 1 << 256


def product(a: Any, b: Any) -> Any:
    """The product; beyond anything that a launch could mean none is given: names of squares of names double its digits each."""
    c = a * b
    if isinstance(c, int) and not -LARGE < c < LARGE:
        raise OverflowError
    return c


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": product, "div": operator.truediv, "floordiv": operator.floordiv, "mod": operator.mod,
    "min": min, "max": max, "cdiv": lambda a, b: -(-a // b), "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "and": lambda a, b: a and b, "or": lambda a, b: a or b, "bitand": operator.and_,
    "bitor": operator.or_, "bitxor": operator.xor, "shl": BOUNDED["shl"], "shr": operator.rshift,
}  # fmt: skip


def apply(op: str, values: list[Any]) -> Any:
    """`op` of evaluated operands; None where one of them is, there is no result, or the operation is none of uniform scalars."""
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

"""Values of uniform scalar expressions outside of any role: tile counts, `let` values, assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cake_ir.derive.structure import definitions
from cake_ir.program import Expr, Program
from cake_ir.walk.code import BOUNDED


class NoValue(Exception):
    """An expression needs something that is not known; the message names it."""


_BINARY: dict[str, Any] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": BOUNDED["mul"], "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "min": min, "max": max, "cdiv": lambda a, b: -(-a // b),
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "and": lambda a, b: a and b, "or": lambda a, b: a or b,
    "shl": BOUNDED["shl"], "shr": lambda a, b: a >> b,
}  # fmt: skip


def value(e: Expr, program: Program, args: Mapping[str, Any], extents: Mapping[tuple[str, int], int]) -> Any:
    """The value of `e` for these arguments. Raises `NoValue` for an unknown argument or extent, or a division by zero."""
    known: dict[str, Any] = {}
    for d in definitions(program.lets, e):
        known[d.name] = _value(d.value, args, extents, known)
    return _value(e, args, extents, known)


def _value(e: Expr, args: Mapping[str, Any], extents: Mapping[tuple[str, int], int], known: dict[str, Any]) -> Any:
    """The same; `known` has the values of the names in it."""
    op = e.op
    if op == "const":
        return e.attrs["value"]
    if op == "param":
        return _known(args, str(e.attrs["name"]), f"scalar `{e.attrs['name']}`")
    if op == "var":
        if e.attrs["name"] not in known:
            raise NoValue(f"`{e.attrs['name']}` is no value of the launch")
        return known[str(e.attrs["name"])]
    if op == "extent":
        return _known(extents, (str(e.attrs["tensor"]), int(e.attrs["dim"])), f"extent {e.attrs['dim']} of `{e.attrs['tensor']}`")  # type: ignore[arg-type]  # dim is an int
    inner = [_value(a, args, extents, known) for a in e.args]
    if op in _BINARY:
        try:
            return _BINARY[op](*inner)
        except ZeroDivisionError:
            raise NoValue("a division by zero") from None
    if op == "select":
        return inner[1] if inner[0] else inner[2]
    if op == "neg":
        return -inner[0]
    if op == "not":
        return not inner[0]
    if op == "cast":
        return int(inner[0]) if getattr(e.type, "dtype", "i32")[0] in "iu" else float(inner[0])
    raise NoValue(f"`{op}` has no value before the launch")


def _known(table: Mapping[Any, Any], key: Any, what: str) -> Any:
    if key not in table:
        raise NoValue(f"{what} has no value")
    return table[key]

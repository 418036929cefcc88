"""Uniform expressions over launch arguments, as the manifest's expression text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cake_backend.cuda.faults import not_lowered
from cake_backend.expressions import MAX_LENGTH
from cake_ir.derive.structure import definitions
from cake_ir.program import Expr, Let

_INFIX = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
          "and": "and", "or": "or", "div": "/"}  # fmt: skip


class Named(Protocol):
    """A program or a plan: whose names stand for values."""

    @property
    def lets(self) -> Mapping[str, Let]: ...


def host_text(program: Named, e: Expr) -> str:
    """Text that `cake_backend.expressions` evaluates to the value of `e` for given arguments.

    Names stand as what they are defined by: names of sums of names may be longer than a manifest takes, and are refused.
    """
    known: dict[str, str] = {}
    for d in definitions(program.lets, e):
        known[d.name] = _short(_written(d.value, known), e)
    return _short(_written(e, known), e)


def _short(text: str, e: Expr) -> str:
    return text if len(text) <= MAX_LENGTH else not_lowered("an expression this long that the launcher evaluates", e.span, "compute it before the launch, and give it as an argument")


def _written(e: Expr, known: Mapping[str, str]) -> str:
    if e.op == "const":
        return repr(e.attrs["value"])
    if e.op == "param":
        return str(e.attrs["name"])
    if e.op == "var" and e.attrs["name"] in known:
        return known[str(e.attrs["name"])]
    if e.op == "extent":
        return f"extent({e.attrs['tensor']}, {e.attrs['dim']})"
    args = [_written(a, known) for a in e.args]
    if e.op in _INFIX:
        return f"({args[0]} {_INFIX[e.op]} {args[1]})"
    if e.op in ("cdiv", "min", "max"):
        return f"{e.op}({args[0]}, {args[1]})"
    if e.op == "neg":
        return f"(-{args[0]})"
    if e.op == "not":
        return f"(not {args[0]})"
    if e.op in ("select", "where"):
        return f"({args[1]} if {args[0]} else {args[2]})"
    if e.op == "shl":
        return f"({args[0]} * (2 ** {args[1]}))" if e.args[1].op != "const" else f"({args[0]} * {2 ** int(e.args[1].attrs['value'])})"  # type: ignore[call-overload]  # a shift by a constant is an int
    if e.op == "shr" and e.args[1].op == "const":
        return f"({args[0]} // {2 ** int(e.args[1].attrs['value'])})"  # type: ignore[call-overload]  # as above
    return not_lowered(f"`{e.op}` in an expression that the launcher evaluates", e.span)


def stripped(text: str) -> str:
    """Without the outermost parentheses, if they enclose everything."""
    if not text.startswith("("):
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text

"""Shifts and masks of whole numbers as the products, quotients and remainders that they are: `x << 6`, `x >> 6` and `x & 63`."""

from __future__ import annotations

from cake_ir.program import Expr
from cake_ir.types import ScalarT

BITS = frozenset({"shl", "shr", "bitand"})
_MOST = 30
"""Bits by which a number of 32 bits can be shifted and stay one."""


def counted(e: Expr) -> tuple[str, Expr, int] | None:
    """The operation that a shift or mask by a number is, what it is of, and by which number."""
    if e.op not in BITS or not isinstance(e.type, ScalarT) or e.type.dtype == "bool":
        return None
    for x, by in (e.args, e.args[::-1])[: 2 if e.op == "bitand" else 1]:
        n = by.attrs.get("value") if by.op == "const" else None
        if isinstance(n, int) and not isinstance(n, bool):
            if e.op == "bitand":
                if 0 < n < 1 << _MOST and not n & (n + 1):
                    return "mod", x, n + 1
            elif 0 <= n <= _MOST:
                return ("mul" if e.op == "shl" else "floordiv"), x, 1 << n
    return None


def as_numbers(e: Expr) -> Expr:
    """The same number without bits, where it is a shift or a mask by a number."""
    found = counted(e) if e.op in BITS else None
    return e if found is None else Expr(found[0], (found[1], Expr("const", (), {"value": found[2]}, e.type, e.span)), {}, e.type, e.span)


__all__ = ["BITS", "as_numbers", "counted"]

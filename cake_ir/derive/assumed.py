"""What assumptions say of one run-time scalar."""

from __future__ import annotations

import math

from cake_ir.derive.bits import BITS, as_numbers
from cake_ir.derive.structure import stated
from cake_ir.program import Assume, Expr


def assumed(assumes: tuple[Assume, ...], name: str) -> tuple[float, float, int]:
    """The least and the greatest value that assumptions leave a scalar, and a number that divides it; ends that nothing bounds are infinite."""
    lo, hi, mod = -math.inf, math.inf, 1
    for c in (c for a in assumes for c in stated(a.cond)):
        if len(c.args) != 2:
            continue
        left, right = c.args
        left = as_numbers(left) if left.op in BITS else left
        if _is_param(left, name) and right.op == "const" and isinstance(right.attrs["value"], int):
            v = right.attrs["value"]
            lo = max(lo, {"gt": v + 1, "ge": v, "eq": v}.get(c.op, -math.inf))
            hi = min(hi, {"lt": v - 1, "le": v, "eq": v}.get(c.op, math.inf))
        elif c.op == "eq" and right.op == "const" and right.attrs["value"] == 0 and left.op == "mod" and _is_param(left.args[0], name):
            d = left.args[1].attrs.get("value") if left.args[1].op == "const" else None
            mod = math.lcm(mod, d) if isinstance(d, int) and d > 0 else mod
    return lo, hi, mod


def equals(assumes: tuple[Assume, ...], name: str) -> list[Expr]:
    """What a scalar is assumed to be equal to."""
    found = [c.args for a in assumes for c in stated(a.cond) if c.op == "eq"]
    return [y for pair in found for x, y in (pair, pair[::-1]) if _is_param(x, name)]


def _is_param(e: Expr, name: str) -> bool:
    return e.op == "param" and e.attrs["name"] == name

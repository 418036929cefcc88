"""Known divisors of uniform integers: what makes a 16-byte access aligned or an edge fall between vectors."""

from __future__ import annotations

from math import gcd

from cake_ir.derive.structure import conjuncts
from cake_ir.program import Expr, Program


def known_divisor(program: Program, e: Expr) -> int:
    """A number that divides the value of `e` in every launch; 0 for the value 0."""
    if e.op == "const":
        v = e.attrs["value"]
        return abs(v) if isinstance(v, int) and not isinstance(v, bool) else 1
    if e.op == "param":
        return assumed_divisor(program, str(e.attrs["name"]))
    if e.op == "mul":
        return known_divisor(program, e.args[0]) * known_divisor(program, e.args[1])
    if e.op in ("add", "sub"):
        return gcd(known_divisor(program, e.args[0]), known_divisor(program, e.args[1]))
    if e.op in ("min", "max"):
        return gcd(known_divisor(program, e.args[0]), known_divisor(program, e.args[1]))
    if e.op == "mod" and e.args[1].op == "const":
        return gcd(known_divisor(program, e.args[0]), known_divisor(program, e.args[1]))
    if e.op == "var" and str(e.attrs["name"]) in program.lets:
        return known_divisor(program, program.lets[str(e.attrs["name"])].value)
    return 1


def assumed_divisor(program: Program, name: str) -> int:
    """The largest divisor of a scalar parameter that `lm.assume(x % c == 0)` states."""
    found = 1
    for assume in program.assumes:
        for c in conjuncts(assume.cond):
            if c.op != "eq":
                continue
            for left, right in (c.args, c.args[::-1]):
                if left.op == "mod" and right.op == "const" and right.attrs["value"] == 0:
                    x, m = left.args
                    if x.op == "param" and x.attrs["name"] == name and m.op == "const" and isinstance(v := m.attrs["value"], int) and v > 0:
                        found = found * v // gcd(found, v)
    return found


def multiple_of(program: Program, e: Expr, n: int) -> bool:
    """Whether `n` divides the value of `e` in every launch."""
    return known_divisor(program, e) % n == 0

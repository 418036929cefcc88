"""Known divisors of uniform integers: what makes a 16-byte access aligned or an edge fall between vectors."""

from __future__ import annotations

from math import gcd

from cake_ir.derive.structure import LARGE, definitions, stated
from cake_ir.program import Expr, Program
from cake_verify.analyses.trips import resolver_of


def known_divisor(program: Program, e: Expr) -> int:
    """A number that divides the value of `e` in every launch; 0 for the value 0."""
    known: dict[str, int] = {}
    for d in definitions(program.lets, e):
        known[d.name] = _divisor(program, d.value, known)
    return _divisor(program, e, known)


def _divisor(program: Program, e: Expr, known: dict[str, int]) -> int:
    """The same; `known` has the divisors of the names in it. Each part is read once, however many others it stands in."""
    found: dict[int, int] = {}
    for n in e.parts():  # children first
        found[id(n)] = _of(program, n, [found[id(a)] for a in n.args], known)
    return found[id(e)]


def _of(program: Program, e: Expr, parts: list[int], known: dict[str, int]) -> int:
    """The divisor of one expression whose parts have these."""
    if e.op == "const":
        v = e.attrs["value"]
        return abs(v) if isinstance(v, int) and not isinstance(v, bool) else 1
    if e.op == "param":
        return assumed_divisor(program, str(e.attrs["name"]))
    if e.op == "mul":
        a, b = parts
        return a * b if a * b < LARGE else max(a, b)  # factors beyond it are left out
    if e.op in ("add", "sub", "min", "max") or (e.op == "mod" and e.args[1].op == "const"):
        return gcd(*parts)
    if e.op == "floordiv" and e.args[1].op == "const" and isinstance(c := e.args[1].attrs["value"], int) and c > 0:
        whole = parts[0]
        return whole // c if whole % c == 0 else 1
    return known.get(str(e.attrs["name"]), 1) if e.op == "var" else 1


def assumed_divisor(program: Program, name: str) -> int:
    """The largest divisor of a scalar parameter that `lm.assume(x % c == 0)` states."""
    found = 1
    for assume in program.assumes:
        for c in stated(assume.cond):
            if c.op != "eq":
                continue
            for left, right in (c.args, c.args[::-1]):
                if left.op == "mod" and right.op == "const" and right.attrs["value"] == 0:
                    x, m = left.args
                    if x.op == "param" and x.attrs["name"] == name and m.op == "const" and isinstance(v := m.attrs["value"], int) and v > 0:
                        found = found * v // gcd(found, v)
    return found


def multiple_of(program: Program, role: str, e: Expr, n: int) -> bool:
    """Whether `n` divides the value of `e`, which a role reads, in every launch; names that the role binds once stand for what they are bound to."""
    return known_divisor(program, e) % n == 0 or known_divisor(program, resolver_of(program, role)(e)) % n == 0

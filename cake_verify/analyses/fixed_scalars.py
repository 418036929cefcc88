"""Run-time scalars whose value an assumption fixes: `x == ..` and `x * c == ..`."""

from __future__ import annotations

from cake_ir.program import Expr, Program
from cake_verify.analyses import trips
from cake_verify.analyses.trips import NotKnown


def fixed_scalars(program: Program, integers: list[str]) -> tuple[dict[str, str], list[tuple[str, int, str]]]:
    """The fixed ones with the Python text of their value, in an order that works; and what must divide: (scalar, divisor, the fixed one)."""
    found: dict[str, str] = {}
    divides: list[tuple[str, int, str]] = []
    free = set(integers)
    for a in program.assumes:
        for n in conjuncts(trips.resolver_of(program, "")(a.cond)):
            if n.op != "eq":
                continue
            for x, other in (n.args, n.args[::-1]):
                divide = ""
                if x.op == "mul" and x.args[1].op == "const":
                    divide, x = f" // {x.args[1].attrs['value']}", x.args[0]
                if x.op != "param" or str(x.attrs["name"]) not in free:
                    continue
                uses = {str(y.attrs["name"]) for y in other.walk() if y.op == "param"}
                if uses & {str(x.attrs["name"]), *found} or any(str(x.attrs["name"]) in t for t in found.values()):
                    continue
                try:
                    found[str(x.attrs["name"])] = f"({trips.python(other, program)}){divide}"
                except NotKnown:
                    continue
                free.discard(str(x.attrs["name"]))
                if divide:
                    divides += [(u, int(divide[4:]), str(x.attrs["name"])) for u in uses]
                break
    return found, divides


def conjuncts(e: Expr) -> list[Expr]:
    """The parts of a condition that all hold."""
    return [x for a in e.args for x in conjuncts(a)] if e.op == "and" else [e]

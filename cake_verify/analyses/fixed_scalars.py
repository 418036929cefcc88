"""Run-time scalars whose value an assumption fixes: `x == ..` and `x * c == ..`."""

from __future__ import annotations

from cake_ir.derive.structure import conjuncts
from cake_ir.program import Expr, Program
from cake_verify.analyses import trips
from cake_verify.analyses.trips import NotKnown


def fixed_scalars(program: Program, integers: list[str]) -> tuple[dict[str, str], dict[str, Expr]]:
    """The fixed ones with the Python text of their value, in an order that works, and the value itself."""
    found: dict[str, str] = {}
    defined: dict[str, Expr] = {}
    free = set(integers)
    for a in program.assumes:
        for n in conjuncts(trips.resolver_of(program, "")(a.cond)):
            if n.op != "eq":
                continue
            for x, other in (n.args, n.args[::-1]):
                value = other
                if x.op == "mul" and x.args[1].op == "const":
                    value, x = Expr("floordiv", (other, x.args[1]), {}, other.type, other.span), x.args[0]
                if x.op != "param" or str(x.attrs["name"]) not in free:
                    continue
                uses = {str(y.attrs["name"]) for y in other.walk() if y.op == "param"}
                if uses & {str(x.attrs["name"]), *found} or any(str(x.attrs["name"]) in t for t in found.values()):
                    continue
                try:
                    found[str(x.attrs["name"])] = trips.python(value, program)
                except NotKnown:
                    continue
                free.discard(str(x.attrs["name"]))
                defined[str(x.attrs["name"])] = value
                break
    return found, defined

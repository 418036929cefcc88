"""Run-time scalars whose value an assumption fixes: `x == ..` and `x * c == ..`."""

from __future__ import annotations

from cake_ir.program import Expr, Program
from cake_verify.analyses import trips
from cake_verify.analyses.ranges import conjuncts
from cake_verify.analyses.trips import NotKnown


def fixed_scalars(program: Program, integers: list[str]) -> tuple[dict[str, str], dict[str, Expr]]:
    """The fixed ones with the Python text of their value, and the value itself: in terms of scalars that are not fixed."""
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
                name, value = str(x.attrs["name"]), _with(value, defined)
                if name in _params(value):
                    continue
                fixed = {n: _with(d, {name: value}) for n, d in defined.items() if name in _params(d)} | {name: value}
                try:
                    found |= {n: trips.python(d, program) for n, d in fixed.items()}
                except NotKnown:
                    continue
                free.discard(name)
                defined |= fixed
                break
    return found, defined


def _params(e: Expr) -> set[str]:
    """The scalars that a value depends on."""
    return {str(x.attrs["name"]) for x in e.walk() if x.op == "param"}


def _with(e: Expr, values: dict[str, Expr]) -> Expr:
    """A value with others in place of the scalars that they fix."""
    if e.op == "param":
        return values.get(str(e.attrs["name"]), e)
    return Expr(e.op, tuple(_with(a, values) for a in e.args), e.attrs, e.type, e.span) if values and e.args else e

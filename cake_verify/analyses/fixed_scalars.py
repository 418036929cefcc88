"""Run-time scalars whose value an assumption fixes: `x == ..` and `x * c == ..`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cake_ir.derive.structure import conjuncts
from cake_ir.program import Expr, Program
from cake_verify.analyses import trips
from cake_verify.analyses.count_text import NotKnown, python


def fixed_scalars(program: Program, integers: list[str]) -> tuple[dict[str, str], dict[str, Expr]]:
    """The fixed ones with the Python text of their value, and the value itself: an expression of scalars that are free."""
    resolve = trips.resolver_of(program, "")
    defined = definitions([n for a in program.assumes for n in conjuncts(resolve(a.cond))], integers)
    found: dict[str, str] = {}
    for name, value in defined.items():
        try:
            found[name] = python(value, program)
        except NotKnown:
            continue
    return found, {n: defined[n] for n in found}


def definitions(facts: Iterable[Expr], names: Iterable[str]) -> dict[str, Expr]:
    """Those of `names` that an equation among `facts` gives a value, with that value; what it mentions has been put in place of it."""
    free = set(names)
    defined: dict[str, Expr] = {}
    for n in facts:
        if n.op != "eq":
            continue
        for x, other in (n.args, n.args[::-1]):
            value = other
            if x.op == "mul" and x.args[1].op == "const":
                value, x = Expr("floordiv", (other, x.args[1]), {}, other.type, other.span), x.args[0]
            name = str(x.attrs.get("name"))
            if x.op != "param" or name not in free:
                continue
            value = put(value, defined)
            if any(y.op == "param" and y.attrs["name"] == name for y in value.parts()):
                continue
            free.discard(name)
            defined = {**{k: put(v, {name: value}) for k, v in defined.items()}, name: value}
            break
    return defined


def put(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """An expression with scalars replaced by what they are defined as."""
    if e.op == "param":
        return values.get(str(e.attrs["name"]), e)
    args = tuple(put(a, values) for a in e.args)
    return e if all(a is b for a, b in zip(args, e.args, strict=True)) else Expr(e.op, args, e.attrs, e.type, e.span)

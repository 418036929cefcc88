"""Run-time scalars whose value an assumption fixes: `x == ..` and `x * c == ..`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_

from cake_ir.derive.structure import stated
from cake_ir.program import Expr, Program
from cake_verify.analyses import trips
from cake_verify.analyses.count_text import texts
from cake_verify.analyses.rebound import substituted


def fixed_scalars(program: Program, integers: list[str]) -> tuple[dict[str, str], dict[str, Expr]]:
    """The fixed ones with the Python text of their value, and the value itself: an expression of scalars that are free."""
    resolve = trips.resolver_of(program, "")
    defined = definitions([n for a in program.assumes for n in stated(resolve(a.cond))], integers)
    found = {name: text[0] for name, text in zip(defined, texts(program, [[value] for value in defined.values()]), strict=True) if text}
    return found, {n: defined[n] for n in found}


def definitions(facts: Iterable[Expr], names: Iterable[str]) -> dict[str, Expr]:
    """Those of `names` that an equation among `facts` gives a value, with that value; what it mentions has been put in place of it."""
    free = set(names)
    defined: dict[str, Expr] = {}
    mentions: dict[str, frozenset[str]] = {}  # what a value is made from
    levels: dict[str, int] = {}
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
            read = {str(y.attrs["name"]) for y in value.parts() if y.op == "param"}
            made = frozenset(z for y in read for z in mentions.get(y, (y,)))
            deep = len(value.parts()) + max([levels.get(y, 0) for y in read], default=0)
            if name in made or deep > trips.DEEPEST:
                continue
            free.discard(name)
            value = put(value, defined)
            for k, of in mentions.items():
                if name in of:
                    defined[k], mentions[k], levels[k] = put(defined[k], {name: value}), of - {name} | made, levels[k] + deep
            defined[name], mentions[name], levels[name] = value, made, deep
            break
    return defined


def put(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """An expression with scalars replaced by what they are defined as; parts that several share stay shared."""
    made: dict[int, Expr] = {}
    for n in e.parts():  # operands first
        args = tuple([made[id(a)] for a in n.args])
        made[id(n)] = values.get(str(n.attrs["name"]), n) if n.op == "param" else n if all(map(is_, args, n.args)) else Expr(n.op, args, n.attrs, n.type, n.span)
    return made[id(e)]


def in_place(e: Expr, var: str, other: Expr) -> Expr:
    """An expression with another one in the place of a variable."""
    return substituted(e, lambda n: other if n.attrs["name"] == var else n)

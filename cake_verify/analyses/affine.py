"""Uniform integers as linear combinations of tile fields, members and loop variables."""

from __future__ import annotations

from dataclasses import dataclass, field

from cake_ir.program import Expr, Program
from cake_verify.analyses.sites import sites


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + sum of coefficient x term; terms are `t.m` (a tile's field), `member`, or a loop variable's name."""

    constant: int = 0
    terms: dict[str, int] = field(default_factory=dict)

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        terms = dict(self.terms)
        for name, c in other.terms.items():
            terms[name] = terms.get(name, 0) + sign * c
        return Affine(self.constant + sign * other.constant, {n: c for n, c in terms.items() if c})

    def times(self, k: int) -> Affine:
        return Affine(self.constant * k, {n: c * k for n, c in self.terms.items()} if k else {})


def affine(program: Program, role: str, e: Expr, depth: int = 16) -> Affine | None:
    """`e` as a linear combination, None where it is not one of known integers."""
    if e.op == "const":
        v = e.attrs["value"]
        return Affine(v) if isinstance(v, int) else None
    if depth == 0:
        return None
    if e.op in ("add", "sub"):
        a, b = (affine(program, role, x, depth - 1) for x in e.args)
        return a.plus(b, 1 if e.op == "add" else -1) if a is not None and b is not None else None
    if e.op == "neg":
        a = affine(program, role, e.args[0], depth - 1)
        return a.times(-1) if a is not None else None
    if e.op == "mul":
        a, b = (affine(program, role, x, depth - 1) for x in e.args)
        if a is None or b is None or (a.terms and b.terms):
            return None
        return a.times(b.constant) if not b.terms else b.times(a.constant)
    if e.op == "field" and e.args[0].op == "var":
        return Affine(0, {f"{e.args[0].attrs['name']}.{e.attrs['name']}": 1})
    if e.op == "role_index":
        return Affine(0, {"member": 1})
    if e.op == "var":
        name = str(e.attrs["name"])
        if name in program.lets:
            return affine(program, role, program.lets[name].value, depth - 1)
        found = sites(program)
        if (role, name) in found.loops and (role, name) not in found.bindings:
            return Affine(0, {name: 1})
        bindings = found.bindings.get((role, name), ())
        if len(bindings) == 1 and (role, name) not in found.results:
            return affine(program, role, bindings[0].value, depth - 1)
    return None

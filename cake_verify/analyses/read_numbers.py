"""Numbers that were read from memory: a run of the gates only invents them, and what they decide is not known."""

from __future__ import annotations

from collections.abc import Iterable

from cake_ir.program import Expr, Program
from cake_verify.analyses.rebound import substituted
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import canonical, resolver_of


def from_memory(program: Program, role: str, e: Expr) -> bool:
    """Whether an expression of a role uses what an operation has read."""
    if e.op == "const" or e.op == "param":
        return False
    results = sites(program).results
    return any([n.op == "ld" or (n.op == "var" and (role, n.attrs["name"]) in results) for n in resolver_of(program, role)(e).parts()])


def outside_reads(e: Expr, found: dict[int, Expr] | None = None) -> Iterable[Expr]:
    """The distinct nodes of a condition, without the index of what it reads or the tile whose field it names."""
    found = {} if found is None else found
    found[id(e)] = e
    for a in e.args if e.op not in ("ld", "field") else ():
        if id(a) not in found:
            outside_reads(a, found)
    return found.values()


def with_number(e: Expr, number: Expr, value: int) -> Expr:
    """An expression in which a number from memory is known: `value` stands wherever the same element is read."""
    text, known = canonical(number), Expr("const", (), {"value": value}, number.type)
    return substituted(e, lambda n: known if canonical(n) == text else n, "ld")


__all__ = ["from_memory", "outside_reads", "with_number"]

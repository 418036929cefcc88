"""Expressions by what they are: who looks for one kind of node need not look at all of them."""

from __future__ import annotations

from cake_ir.derive.structure import listed, nodes
from cake_ir.fact import fact
from cake_ir.program import Assign, Expr, For, If, Program


@fact
def mentions(program: Program) -> dict[str, tuple[Expr, ...]]:
    """The nodes of every operand of every operation by their `op`, in text order."""
    found: dict[str, list[Expr]] = {}
    for of_op in nodes(program):
        for n in of_op:
            if n.op in found:
                found[n.op].append(n)
            else:
                found[n.op] = [n]
    return {op: tuple(of_kind) for op, of_kind in found.items()}


@fact
def beside(program: Program) -> tuple[Expr, ...]:
    """The nodes of what role blocks evaluate beside their operations: values of names, bounds of loops, conditions of branches."""
    found: list[Expr] = []
    for _, body in listed(program):
        for s in body:
            if isinstance(s, Assign):
                if isinstance(s.value, Expr):
                    found += s.value.parts()
            elif isinstance(s, For):
                for bound in (s.lo, s.hi):
                    if bound is not None:
                        found += bound.parts()
            elif isinstance(s, If):
                found += s.cond.parts()
    return tuple(found)


@fact
def words(program: Program) -> frozenset[str]:
    """Every kind of node that some expression of the program has, those of operations, statements and `let`s: a rule about one that is not there has nothing to find."""
    return frozenset(mentions(program)).union([n.op for n in beside(program)], [n.op for d in program.lets.values() for n in d.value.parts()])

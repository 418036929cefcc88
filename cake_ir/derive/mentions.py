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


@fact
def floor_divisions(program: Program) -> tuple[Expr, ...]:
    """The divisions that round down outside of operations: in tile counts, in `let`s and in what role blocks evaluate."""
    if "floordiv" not in words(program) and not any([n.op == "floordiv" for d in program.schedulers.values() for e in d.tiles for n in e.parts()]):
        return ()  # as mostly
    counts = (*(e for d in program.schedulers.values() for e in d.tiles), *(d.value for d in program.lets.values()))
    return (*(n for e in counts for n in e.parts() if n.op == "floordiv"), *(n for n in beside(program) if n.op == "floordiv"))


@fact
def holding(program: Program) -> dict[str, frozenset[int]]:
    """By the `op` of a node which operations have such a node in an operand."""
    found: dict[str, set[int]] = {}
    for i, of_op in enumerate(nodes(program)):
        for kind in {n.op for n in of_op}:
            if kind in found:
                found[kind].add(i)
            else:
                found[kind] = {i}
    return {kind: frozenset(ids) for kind, ids in found.items()}

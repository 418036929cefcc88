"""Which tensors of numbers hold running offsets: where the rows of one sequence, group or list begin and those of the one before end."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fact import fact
from cake_ir.program import Expr, Program
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import canonical, conditions, loops, resolver_of


@fact
def prefix_tensors(program: Program) -> frozenset[str]:
    """Tensors of running offsets: somewhere both element i and element i + 1 are read, and something is made of the two.

    A list that is walked with an eye on what comes next (the next page of a table, the next block of a sparse row) reads both too, but each by itself, and sorted numbers of segments are compared with the next one.
    """
    seen: dict[str, set[str]] = {}
    for site in sites(program).of("ld"):
        if "tensor" in site.op.attrs:
            i = site.op.operands["i"]
            assert isinstance(i, Expr)
            seen.setdefault(str(site.op.attrs["tensor"]), set()).add(canonical(resolver_of(program, site.role.name)(i)))
    out = {s.offsets for s in program.schedulers.values() if s.offsets}
    maybe = {tensor for tensor, forms in seen.items() if tensor not in out and _neighbours(forms)}
    if maybe:
        out |= {tensor for group in _together(program) for tensor, forms in _reads(group, maybe).items() if _neighbours(forms)}
    return frozenset(out)


def _together(program: Program) -> Iterator[list[Expr]]:
    """Expressions out of which one thing is made: the bounds of a loop, a condition, a number that has a name, the operands of one operation."""
    for loop in loops(program):
        yield [loop.lo, loop.hi]
    for _, _, cond in conditions(program):
        yield [cond]
    for (role, _), bound in sites(program).bindings.items():
        yield from ([resolver_of(program, role)(b.value)] for b in bound)
    for site in sites(program).ops:
        resolve = resolver_of(program, site.role.name)
        operands = [x for o in site.op.operands.values() for x in (o if isinstance(o, tuple) else (o,))]
        yield [resolve(x) for x in operands if isinstance(x, Expr)]


def _reads(group: list[Expr], tensors: set[str]) -> dict[str, set[str]]:
    """By tensor, the places from which a group of expressions reads it."""
    found: dict[str, set[str]] = {}
    for e in group:
        for n in e.parts() if not _alike(e) else ():
            if n.op == "ld" and n.attrs["tensor"] in tensors:
                found.setdefault(str(n.attrs["tensor"]), set()).add(canonical(n.args[0]))
    return found


def _alike(e: Expr) -> bool:
    """Whether it is only asked if two numbers are the same, as where a sorted list of segments comes to the next one."""
    return e.op in ("eq", "ne") and all(a.op == "ld" for a in e.args)


def _neighbours(forms: set[str]) -> bool:
    """Whether two of these texts of places are one apart."""
    return any(f"({t}+1)" in forms or (t.startswith("(") and _plus_one(t) in forms) for t in forms)


def _plus_one(text: str) -> str:
    inner = text[1:-1].split("+")
    if inner[-1].lstrip("-").isdigit():
        n = int(inner[-1]) + 1
        return "(" + "+".join([*inner[:-1], str(n)] if n else inner[:-1]) + ")"
    return f"({text[1:-1]}+1)"

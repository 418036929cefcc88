"""Coordinates that are fragments of consecutive numbers: `base + lm.iota(x, axis)`, in whatever order it is written and under whatever name."""

from __future__ import annotations

from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import resolver_of

_DEPTH = 12


def run_of(program: Program, role: str, e: Expr) -> tuple[Expr, int] | None:
    """The first number of a run (resolved) and how many there are; None for a fragment that is no run."""
    t = e.type
    if not isinstance(t, FragT):
        return None
    first = _first(program, role, e, _DEPTH)
    return None if first is None else (first, t.rows if t.form == "rowvec" else t.cols)


def defined(program: Program, role: str, e: Expr) -> Expr:
    """What a name of a fragment stands for, where it is bound once; the expression itself otherwise."""
    for _ in range(_DEPTH):
        if e.op != "var":
            break
        bound = sites(program).results.get((role, str(e.attrs["name"])), ())
        value = bound[0].op.operands.get("value") if len(bound) == 1 and bound[0].op.name == "compute" and len(bound[0].targets) == 1 else None
        if not isinstance(value, Expr):
            break
        e = value
    return e


def _first(program: Program, role: str, e: Expr, depth: int) -> Expr | None:
    e = defined(program, role, e)
    resolve = resolver_of(program, role)
    if e.op == "iota":
        return resolve(e.args[1]) if len(e.args) > 1 else Expr("const", (), {"value": 0})
    if depth and e.op in ("add", "sub") and len(e.args) == 2:
        wide = [isinstance(a.type, FragT) for a in e.args]
        if wide[0] and not wide[1]:
            first = _first(program, role, e.args[0], depth - 1)
            return None if first is None else Expr(e.op, (first, resolve(e.args[1])), {}, e.args[1].type)
        if wide[1] and not wide[0] and e.op == "add":
            first = _first(program, role, e.args[1], depth - 1)
            return None if first is None else Expr("add", (resolve(e.args[0]), first), {}, e.args[0].type)
    return None


__all__ = ["defined", "run_of"]

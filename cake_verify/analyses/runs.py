"""Fragments of consecutive numbers, `base + lm.iota(x, axis)` in whatever order it is written and under whatever name: as coordinates, and in masks."""

from __future__ import annotations

from cake_ir.derive.structure import conjuncts
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import resolver_of

_DEPTH = 12
_ALL = frozenset(range(5))


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


def mask_ends(program: Program, s: Site) -> tuple[list[tuple[int, Expr]], frozenset[int]]:
    """By axis of the tensor, how many of an access's elements from the first on its mask lets through at most (resolved), and the axes along which
    something else decides too."""
    mask, x, coords = s.op.operands.get("mask"), s.op.operands.get("x"), s.op.operands.get("coords")
    t = x.type if isinstance(x, Expr) else s.op.type
    if not isinstance(mask, Expr) or not isinstance(t, FragT) or not isinstance(coords, tuple):
        return [], frozenset() if mask is None else _ALL
    role, resolve = s.role.name, resolver_of(program, s.role.name)
    placed = next((k for k, c in enumerate(coords) if isinstance(c.type, FragT)), 0)
    one_line = t.rank == 1 or t.form in ("rowvec", "colvec")
    down, right = (placed, placed) if one_line else (next((k for k, c in enumerate(coords) if isinstance(c.type, FragT) and c.type.form == "rowvec"), 1), 0)
    out: list[tuple[int, Expr]] = []
    unknown: set[int] = set()
    for part in conjuncts(defined(program, role, mask)):
        m = defined(program, role, part)
        if m.op == "in_bounds":
            out += [(down, resolve(m.args[1])), (right, resolve(m.args[2]))]
        elif m.op in ("lt", "le") and not isinstance(m.args[1].type, FragT) and (run := run_of(program, role, m.args[0])) is not None:
            end = Expr("sub", (resolve(m.args[1]), run[0]), {}, run[0].type)
            rows = isinstance(m.args[0].type, FragT) and m.args[0].type.form == "rowvec"
            out.append((down if rows else right, Expr("add", (end, Expr("const", (), {"value": 1}))) if m.op == "le" else end))
        else:
            form = m.type.form if isinstance(m.type, FragT) else ""
            unknown |= {down} if form == "rowvec" else {right} if form == "colvec" else _ALL
    return out, frozenset(unknown)


__all__ = ["defined", "mask_ends", "run_of"]

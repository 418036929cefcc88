"""The terms of a coordinate: how many values each takes."""

from __future__ import annotations

from cake_ir.program import Expr, Program
from cake_ir.span import Span
from cake_verify.analyses.affine import affine
from cake_verify.analyses.sites import Site
from cake_verify.analyses.trips import resolver_of

LOADS = ("tma_load", "cp_async", "load")
"""Operations that bring a box of a tensor at coordinates."""


def counted(program: Program, s: Site, name: str) -> tuple[Expr | int, int, Span] | None:
    """How many values a term takes, the multiple that it is rounded up to, and where that is written."""
    if name == "member":
        return s.role.members, 1, s.role.span
    if "." in name:
        var, _, field = name.partition(".")
        loop = next((x for x in s.loops if x.var == var), None)
        d = program.schedulers.get(str(loop.scheduler)) if loop is not None else None
        if d is not None and d.kind == "grouped" and field == "n":  # the tiles along n are the same for every group
            return resolver_of(program, "")(d.tiles[-1]), d.cluster[1] if len(d.cluster) > 1 else 1, d.spans.get("tiles", d.span)
        if d is None or d.kind == "grouped" or field not in d.names:
            return None
        k = d.names.index(field)
        return resolver_of(program, "")(d.tiles[k]), d.cluster[k] if k < len(d.cluster) else 1, _written(program, d.tiles[k], d.spans.get("tiles", d.span))
    loop = next((x for x in s.loops if x.var == name), None)
    if loop is None or loop.lo is None or loop.hi is None or affine(program, s.role.name, loop.lo) is None:
        return None
    resolve = resolver_of(program, s.role.name)
    lo = resolve(loop.lo)
    if lo.op != "const" or lo.attrs["value"] != 0:
        return None
    return resolve(loop.hi), 1, _written(program, loop.hi, loop.head)


def _written(program: Program, e: Expr, here: Span) -> Span:
    """Where a count is written: where it has a name, at the declaration of the name."""
    let = program.lets.get(str(e.attrs.get("name"))) if e.op == "var" else None
    return here if let is None else let.value.span


__all__ = ["LOADS", "counted"]

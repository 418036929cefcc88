"""Loops that start where their tile does: `for r in lm.range(t.p * 8, lm.min((t.p + 1) * 8, ROWS))` gives every tile rounds of its own."""

from __future__ import annotations

from cake_ir.program import Expr, For, Program
from cake_verify.analyses import ranges
from cake_verify.analyses.affine import Affine, affine
from cake_verify.analyses.sites import Site
from cake_verify.analyses.trips import resolver_of


def with_starts(program: Program, s: Site, line: Affine) -> Affine:
    """A coordinate in rounds that count from 0: the start of each loop that it runs along is added as often as the loop's variable stands in it."""
    for loop in reversed(s.loops):  # an inner loop may start at the variable of an outer one
        times = line.terms.get(loop.var, 0)
        if not times or loop.lo is None or (loop.lo.op == "const" and loop.lo.attrs["value"] == 0):
            continue
        start = affine(program, s.role.name, loop.lo)
        if start is None:
            return line
        line = line.plus(start.times(times))
    return line


def rounds(program: Program, s: Site, loop: For) -> int | None:
    """How many rounds a loop has, or has at most where its end is the lesser of several; None if that is no number."""
    if loop.lo is None or loop.hi is None:
        return None
    role = s.role.name
    lo, hi = (ranges.of(program, role, e).exact for e in (loop.lo, loop.hi))
    if lo is not None and hi is not None:
        return hi - lo
    start = affine(program, role, loop.lo)
    if start is None:
        return None
    lengths = [end.plus(start, -1) for e in _lesser(resolver_of(program, role)(loop.hi)) if (end := affine(program, role, e)) is not None]
    return min((x.constant for x in lengths if not x.terms), default=None)


def _lesser(e: Expr) -> list[Expr]:
    """What an end is the least of."""
    return [x for a in e.args for x in _lesser(a)] if e.op == "min" else [e]


__all__ = ["rounds", "with_starts"]

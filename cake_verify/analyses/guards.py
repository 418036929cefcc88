"""Conditions that change with the iteration or the tile, and whether the runs got as far as that."""

from __future__ import annotations

from collections.abc import Iterable

from cake_ir.derive.structure import listed
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, If, Program
from cake_verify.analyses import trips
from cake_verify.analyses.member_guards import far_tiles, met_both_ways, tile_guards
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.settings import Setting
from cake_verify.analyses.trips import spoken

_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


def unreached(program: Program, settings: Iterable[Setting]) -> list[Fault]:
    """The conditions on counters of loops, and on tiles, whose constant lies beyond all runs: nothing is known of what they do there."""
    found = list(settings)
    met: dict[int, bool] | None = None
    rounds = max((n for s in found for n in s.trips), default=0)
    fixed = {s.var for _, body in listed(program) for s in body if isinstance(s, For) and s.hi is not None and s.lo is not None and _number(s.lo) and _number(s.hi)}
    out = []
    for role, branch, cond in trips.conditions(program):
        for n in cond.parts():
            modulus = n.args[1].attrs.get("value") if n.op == "mod" and n.args[1].op == "const" and any(x.op == "var" and x.attrs.get("name") not in fixed for x in n.args[0].parts()) else None
            if isinstance(modulus, int) and modulus > max(rounds, 4):
                out.append(_told(role, branch, n, modulus, rounds))
                break
            if n.op not in _COMPARED:
                continue
            constant, live = trips.linear(Expr("sub", n.args))
            counters = {t: c for t, c in live.items() if t.startswith("?")}
            far = 0
            if counters and not any(t[1:] in fixed for t in counters):
                far = abs(constant) // min(abs(c) for c in counters.values())
                far = far if far + 1 >= max(rounds, 4) else 0
            elif (far := far_tiles(n)) != 0:
                if met is None:
                    prefix = prefix_tensors(program)
                    met = {id(c): any(met_both_ways(program, x, prefix, test) for x in found) for c, test in tile_guards(program)}
                if met.get(id(cond)):
                    far = 0
            if far:
                out.append(_told(role, branch, n, far, rounds))
                break
    return out


def _told(role: str, branch: If, e: Expr, far: int, rounds: int) -> Fault:
    return Fault("S090", f"not decided: no run gets as far as `{spoken(e)}` changes in `{role}`, {far:,} rounds or tiles on", branch.cond.span, severity="note",
                 help="compare with a number near the first or the last round, or with an argument", facts={"role": role, "rounds": rounds})  # fmt: skip


def _number(e: Expr) -> bool:
    return e.op == "const"

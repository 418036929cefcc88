"""Bests that a comparison keeps: `lm.argmin(x, into=best)`, or `best = lm.where(d < best, d, best)` with or without an index beside it."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import OPPOSITE, TURNED
from cake_ir.fact import fact
from cake_ir.program import Expr, Program
from cake_ir.record import record
from cake_verify.analyses.runs import defined
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import canonical


@record(eq=False)
class Best:
    """A place that `site` keeps the least (or the largest) of `elements` in; it starts at `number`, and an index beside it at `index` where there is one."""

    site: Site
    start: Site
    name: str
    least: bool
    elements: Expr
    number: float
    index: int | None


@fact
def bests(program: Program) -> tuple[Best, ...]:
    """The bests of a program that start from a number."""
    said = mentions(program)
    found = list(_pairs(program)) if "argmin" in said or "argmax" in said else []
    return tuple(found + (list(_chosen(program)) if "where" in said else []))


def _pairs(program: Program) -> Iterator[Best]:
    for s in sites(program).of("compute"):
        e = s.op.operands["value"]
        if not isinstance(e, Expr) or e.op not in ("argmin", "argmax") or len(s.targets) != 1 or e.args[-1].op != "var":
            continue
        name = str(e.args[-1].attrs["name"])
        start = _started(program, s, name)
        value = start.op.operands.get("value") if start is not None else None
        if start is None or not isinstance(value, Expr) or value.op != "pair":
            continue
        number, index = (_number(program, s.role.name, a) for a in value.args)
        if number is not None:
            yield Best(s, start, name, e.op == "argmin", e.args[0], number, int(index) if index is not None and index.is_integer() else None)


def _chosen(program: Program) -> Iterator[Best]:
    for s in sites(program).of("compute"):
        e = s.op.operands["value"]
        if not isinstance(e, Expr) or e.op != "where" or len(s.targets) != 1 or not s.loops:
            continue
        name = s.targets[0]
        mine = next((k for k in (1, 2) if e.args[k].op == "var" and e.args[k].attrs["name"] == name), None)
        cond = defined(program, s.role.name, e.args[0])
        if mine is None or cond.op not in TURNED or cond.op in ("eq", "ne"):
            continue
        other = e.args[3 - mine]
        a, b = cond.args
        op = cond.op
        if a.op == "var" and a.attrs["name"] == name:
            a, b, op = b, a, TURNED[op]
        if not (b.op == "var" and b.attrs["name"] == name) or canonical(a) != canonical(other):
            continue
        op = op if mine == 2 else OPPOSITE[op]  # how the element that is taken compares with the best so far
        start = _started(program, s, name)
        number = _number(program, s.role.name, start.op.operands.get("value")) if start is not None else None
        if start is None or number is None:
            continue
        index = _beside(program, s, e, mine)
        yield Best(s, start, name, op in ("lt", "le"), other, number, index)


def _started(program: Program, s: Site, name: str) -> Site | None:
    """What a name was last given in front of the loops that keep a best in it."""
    if (s.role.name, name) in sites(program).bindings:
        return None
    before = [b for b in sites(program).results.get((s.role.name, name), ()) if b.order < s.order]
    start = next((b for b in reversed(before) if not _keeps(b, name)), None)
    return start if start is not None and s.path[: len(start.path)] == start.path else None


def _keeps(b: Site, name: str) -> bool:
    """Whether an assignment keeps what the name had: it reads the name."""
    value = b.op.operands.get("value")
    return isinstance(value, Expr) and any(n.op == "var" and n.attrs["name"] == name for n in value.parts())


def _number(program: Program, role: str, e: object) -> float | None:
    """The number that a vector or a tile is made of."""
    if not isinstance(e, Expr):
        return None
    e = defined(program, role, e)
    number = e.attrs.get("init") if e.op in ("frag", "rowvec", "colvec") else e.attrs.get("value") if e.op == "const" else None
    return float(number) if isinstance(number, (int, float)) and not isinstance(number, bool) else None


def _beside(program: Program, s: Site, e: Expr, mine: int) -> int | None:
    """What an index starts from that the same comparison keeps."""
    for x in sites(program).of_role(s.role.name):
        v = x.op.operands.get("value") if x.op.name == "compute" else None
        if x is s or x.path != s.path or not isinstance(v, Expr) or v.op != "where" or len(x.targets) != 1 or canonical(v.args[0]) != canonical(e.args[0]):
            continue
        if v.args[mine].op == "var" and v.args[mine].attrs["name"] == x.targets[0]:
            start = _started(program, x, x.targets[0])
            number = _number(program, s.role.name, start.op.operands.get("value")) if start is not None else None
            if number is not None and number.is_integer():
                return int(number)
    return None


__all__ = ["Best", "bests"]

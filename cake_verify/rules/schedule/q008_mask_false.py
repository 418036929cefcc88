"""Q008: a mask lets something through."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.ops import taking
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses import ranges
from cake_verify.analyses.ranges import Range
from cake_verify.rule import Page
from cake_verify.rules.examples import MULTICAST, edit

PAGE = Page(
    code="Q008",
    title="no element is written",
    statement="The mask of a load or store is true for some element, and a scheduler has tiles.",
    why="A store whose mask is false everywhere leaves the output as it was: poison under test, yesterday's numbers in production.",
    failing=edit(MULTICAST, ("rows=M - t.m * 64", "rows=0")),
    passing=MULTICAST,
    limits="Decided by intervals of members, static loops and `lm.assume`d bounds.",
)


_MASKED = taking("mask")


def check(program: Program) -> Iterator[Fault]:
    for d in program.schedulers.values():
        for name, e in zip(d.names, d.tiles, strict=False):
            if ranges.of(program, None, e).hi <= 0:
                yield Fault("Q008", f"`{d.name}` has no tiles along `{name}`: nothing is computed", d.spans.get("tiles", d.span), facts={"axis": name})
    for site in ranges.live(program, *_MASKED):
        mask = site.op.operands.get("mask")
        if isinstance(mask, Expr) and _false(program, site.role.name, mask):
            yield Fault("Q008", f"the mask of this `{site.op.name}` is false for every element", site.op.spans.get("mask", mask.span), (), "compare with the extent that is left", (), {"op": site.op.name})


def _false(program: Program, role: str, e: Expr) -> bool:
    """Whether the condition certainly holds nowhere."""
    if e.op == "const":
        return not e.attrs["value"]
    if e.op in ("and", "bitand"):
        return any(_false(program, role, a) for a in e.args)
    if e.op in ("or", "bitor"):
        return all(_false(program, role, a) for a in e.args)
    if e.op == "in_bounds":
        return any(ranges.of(program, role, a).hi <= 0 for a in e.args[1:])
    if e.op in _NEVER and len(e.args) == 2:
        a, b = (_values(program, role, x) for x in e.args)
        return _NEVER[e.op](a, b)
    return False


_NEVER = {
    "lt": lambda a, b: a.lo >= b.hi, "le": lambda a, b: a.lo > b.hi, "gt": lambda a, b: a.hi <= b.lo, "ge": lambda a, b: a.hi < b.lo,
    "eq": lambda a, b: a.lo > b.hi or a.hi < b.lo,
}  # fmt: skip


def _values(program: Program, role: str, e: Expr) -> Range:
    """The values over all elements of a coordinate vector, or of a scalar."""
    if e.op == "iota" and isinstance(e.type, FragT):
        base = ranges.of(program, role, e.args[1]) if len(e.args) > 1 else ranges.const(0)
        n = e.type.rows if e.type.form == "rowvec" else e.type.cols
        return ranges.add(base, ranges.span(0, n - 1))
    if isinstance(e.type, FragT):
        return ranges.ANY
    return ranges.of(program, role, e)

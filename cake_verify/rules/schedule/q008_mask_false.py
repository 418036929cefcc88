"""Q008: a mask lets something through, and some tile takes an arm that stores."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.ops import taking
from cake_ir.program import Expr, Program, op_of, statements
from cake_ir.types import FragT
from cake_verify.analyses import ranges, trips
from cake_verify.analyses.ranges import Range
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import MULTICAST, edit

PAGE = Page(
    code="Q008",
    title="no element is written",
    statement="The mask of a load or store is true for some element, a scheduler has tiles, and some tile takes each arm that writes global memory.",
    why="A store whose mask is false everywhere leaves the output as it was: poison under test, yesterday's numbers in production.",
    failing=edit(MULTICAST, ("rows=M - t.m * 64", "rows=0")),
    passing=MULTICAST,
    limits="Masks are decided by intervals of members, static loops and `lm.assume`d bounds; arms by comparisons of one tile number with the count of tiles along its axis, "
    "give or take a constant.",
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
    yield from _arms(program)


def _arms(program: Program) -> Iterator[Fault]:
    """Arms that write and that the numbers of no tile lead to."""
    if not any(d.tiles for d in program.schedulers.values()):
        return
    for role, branch, cond in trips.conditions(program):
        if not any(n.op == "field" for n in cond.parts()):
            continue
        dead = [(arm, always) for arm, always in ((branch.orelse, True), (branch.then, False)) if arm and _settled(program, cond) is always]
        for arm, always in dead:
            writes = next((op for x in statements(arm) if (op := op_of(x)) is not None and op.name in _WRITES and str(op.attrs.get("tensor")) in program.tensors), None)
            if writes is not None:
                message = f"no tile comes to where {call(writes)} writes `{writes.attrs['tensor']}`: `{trips.spoken(branch.cond)}` is {'true' if always else 'false'} for every tile"
                yield Fault("Q008", message, branch.cond.span, ((writes.span, "never done"),), "compare with the number of the last tile, or leave the arm out", (), {"role": role})


_WRITES = frozenset({"store", "tma_store", "bulk_store", "atomic", "tma_reduce", "signal"})


def _settled(program: Program, cond: Expr) -> bool | None:
    """What a comparison of one tile number with the count along its axis says of all tiles alike."""
    if cond.op not in ("lt", "le", "gt", "ge") or len(cond.args) != 2:
        return None
    constant, live = trips.linear(Expr("sub", cond.args))
    fields = [t for t in live if t.startswith("tile.")]
    axes = [(d, i) for d in program.schedulers.values() for i, n in enumerate(d.names) if fields == [f"tile.{n}"]]
    if len(axes) != 1 or axes[0][0].kind == "grouped" or (axes[0][1] < 2 and axes[0][0].cluster[axes[0][1]] > 1):
        return None
    d, i = axes[0]
    by = live.pop(fields[0])
    count, terms = trips.linear(trips.resolver_of(program, "")(d.tiles[i]))
    first = constant if not any(live.values()) else None  # a value where arguments cancel
    last = constant + by * (count - 1) if not any(live.get(t, 0) + by * terms.get(t, 0) for t in {*live, *terms}) else None
    hard, easy = (last, first) if (by > 0) == (cond.op in ("lt", "le")) else (first, last)
    if hard is not None and _HOLDS[cond.op](hard):
        return True
    return False if easy is not None and not _HOLDS[cond.op](easy) else None


_HOLDS = {"lt": lambda x: x < 0, "le": lambda x: x <= 0, "gt": lambda x: x > 0, "ge": lambda x: x >= 0}


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

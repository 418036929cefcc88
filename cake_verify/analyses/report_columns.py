"""Columns beyond a tensor's end, and columns with wrong numbers, told as faults."""

from __future__ import annotations

from typing import Any

from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, If, Op
from cake_verify.analyses import edits
from cake_verify.analyses.left_out import without_offset
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import spoken
from cake_verify.analyses.value_ends import divided_by
from cake_verify.analyses.value_masks import selected
from cake_verify.analyses.value_state import Clash
from cake_verify.analyses.value_walk import ValueWalk


def told_column(plan: Plan, walk: ValueWalk, c: Clash, facts: dict[str, Any]) -> Fault:
    """A mask or a selection that takes filled zeros for elements, or a selection that gives two tiles one range of numbers."""
    assert c.one and c.other
    axis, source = c.one[0], plan.program.ops[c.one[2]]
    at = c.op.spans.get("value", c.op.span)
    related = ((source.span, f"filled with zeros beyond `{axis}`"),)
    if c.kind == "related":
        other = plan.program.ops[c.other[2]]
        message = f"this mask compares positions of rows and columns whose bases do not fit: rows start at `{axis}` = {c.one[1]}, columns at {c.other[1]}"
        return Fault("S034", message, at, ((source.span, "the rows"), (other.span, "the columns")), "the base of each `lm.iota` is where its rows or columns start", (),
                     {**facts, "axis": axis})  # fmt: skip
    if c.kind == "strays":
        message = f"the columns of this mask come from `{axis}` = {c.one[1]} and then from {c.other[1]}, and the base of their `lm.iota` has not moved as far against that of the rows"
        return Fault("S034", message, at, ((source.span, "the columns"),), "the base of `lm.iota(.., axis=1, base=b)` is where the tile's columns start", (), {**facts, "axis": axis})
    offsets = divided_by(walk, c.one)
    if c.kind == "behind":
        return _behind(plan, c, str(offsets), facts)
    if offsets is not None and c.kind != "numbered":
        what = "this mask lets columns of the next sequence through" if c.kind == "mask" else "columns of the next sequence reach a maximum or minimum over this one"
        return Fault("S034", f"{what}: `{offsets}` divides `{axis}`", at, ((source.span, "loaded here, past the sequence's end"),),
                     "mask with the number of rows that the sequence has, `lm.iota(.., axis=1, base=b)` with b counted from its first row", (), {**facts, "axis": axis})  # fmt: skip
    if c.kind == "mask":
        message = f"this mask lets columns beyond `{axis}` through: there the copy has filled in zeros, which are not neutral where others are masked as infinite"
        help = f"compare `lm.iota(.., axis=1, base=b)` with `< {axis}`, where b is {c.one[1]} here"
        return Fault("D010", message, at, related, help, (), {**facts, "axis": axis})
    if c.kind == "filled":
        message = f"zeros filled in beyond `{axis}` reach a maximum or minimum along it, for which zero is not neutral"
        help = f"mask first: `lm.where(lm.iota(x, axis=1, base=..) < {axis}, x, -lm.inf)`, or state with `lm.assume` that `{axis}` is a multiple of the tile"
        return Fault("D010", message, at, related, help, (), {**facts, "axis": axis})
    other = plan.program.ops[c.other[2]]
    message = f"columns `{axis}` = {c.one[1]} and `{axis}` = {c.other[1]} get the same numbers from `lm.{selected(c.op)}`: its base does not follow the tile"
    return Fault("S034", message, at, ((other.span, "these columns were loaded here"),), "the base is the number of the tile's first column", (), facts)


def off_diagonal(plan: Plan, c: Clash, facts: dict[str, Any]) -> Fault:
    """A tile whose mask lets columns pass that another tile's does not, or that goes without one."""
    assert c.passed is not None and c.one
    wide, narrow = c.passed
    axis, at, masked = c.one[0], wide.op.spans.get("value", wide.op.span), narrow.op.spans.get("value", narrow.op.span)
    facts = {**facts, "axis": axis, "expected": narrow.by, "found": wide.by}
    after = wide.by > narrow.by
    reaches = [f"up to row {_signed(p.by)}" if after else f"from row {_signed(p.by)} on" for p in (wide, narrow)]
    if c.kind == "diagonals":
        compare = _comparison(wide.op)
        message = f"this mask lets columns of `{axis}` {reaches[0]} pass, and another mask of the same products only those {reaches[1]}"
        fixes = without_offset(compare) if compare is not None else ()
        return Fault("D037", message, at, ((masked, "the other mask"),), "mask all tiles of one product along one diagonal", fixes, facts)
    if c.kind == "short":
        message = f"this mask lets columns of `{axis}` {reaches[0]} pass, and the tiles that are multiplied end {reaches[1].removeprefix('up ')}, for the last row of every tile"
        compare = _comparison(wide.op)
        return Fault("D037", message, at, (), f"let pass what all rows get: columns up to row {_signed(narrow.by)}", without_offset(compare) if compare is not None else (), facts)
    message = f"a maximum runs over columns of `{axis}` {reaches[0]} and no mask, and in other tiles of the same product only those {reaches[1]} pass"
    made = _bound(plan, wide.op)
    related = ((masked, "masked here"),) if made is None else ((wide.op.span, "the maximum"), (masked, "masked here"))
    return Fault("D037", message, at if made is None else made.span, related, "mask this tile too: only tiles of which every element passes go without", (), facts)


def _signed(by: int) -> str:
    return f"{'+' if by >= 0 else '-'} {abs(by)}"


def _comparison(op: Op) -> Expr | None:
    """The comparison of positions in a mask with something added on one side."""
    value = op.operands.get("value")
    found = [a for n in (value.parts() if isinstance(value, Expr) else ()) if n.op in ("lt", "le", "gt", "ge") for a in n.args if a.op == "add"]
    return found[0] if len(found) == 1 else None


def _bound(plan: Plan, op: Op) -> Op | None:
    """The computation that gave what a maximum runs over its name, where that is one."""
    value = op.operands.get("value")
    over = next((n.args[0] for n in (value.parts() if isinstance(value, Expr) else ()) if n.op == "reduce"), None)
    if over is None or over.op != "var":
        return None
    found = [s.op for s in sites(plan.program).results.get((plan.sites[op.id].role, str(over.attrs["name"])), ()) if s.op.id < op.id]
    return found[-1] if found and found[-1].name == "compute" else None


def _behind(plan: Plan, c: Clash, offsets: str, facts: dict[str, Any]) -> Fault:
    """A row behind the end of its sequence in a running value, with the condition that lets it through."""
    assert c.one
    source = plan.program.ops[c.one[2]]
    guard = next((s for s, _ in reversed(plan.sites[c.op.id].around) if isinstance(s, If)), None)
    at = guard.cond.span if guard is not None and guard.cond.span.line else plan.sites[c.op.id].stmt.span
    related = [(source.span, "loaded here, past the sequence's end")]
    if guard is not None:
        related.insert(0, (plan.sites[c.op.id].stmt.span, "taken in here"))
    fixes: tuple[Fix, ...] = ()
    if guard is not None and guard.cond.op == "le" and guard.cond.span.line:
        fixes = (edits.replace(guard.cond.span, f"{spoken(guard.cond.args[0])} < {spoken(guard.cond.args[1])}"),)
    elif guard is not None and guard.cond.op == "lt":
        fixes = without_offset(guard.cond.args[1])
    message = f"a row of the next sequence is taken in: `{offsets}` divides `{c.one[0]}`, and `{c.one[0]}` = {c.one[1]} lies behind the end of the one that the tile belongs to"
    return Fault("S034", message, at, tuple(related), "take in only as many rows as the sequence has left", fixes, {**facts, "axis": c.one[0]}, cause="next sequence")

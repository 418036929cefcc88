"""Columns beyond a tensor's end, and columns with wrong numbers, told as faults."""

from __future__ import annotations

from typing import Any

from cake_ir.fault import Fault, Fix
from cake_ir.program import If
from cake_verify.analyses import edits
from cake_verify.analyses.left_out import without_offset
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.trips import spoken
from cake_verify.analyses.value_fills import divided_by
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

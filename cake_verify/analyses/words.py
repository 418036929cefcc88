"""How reports name things: members, slots, iterations, and the trace in two columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cake_ir.ops import spec_of
from cake_ir.ops.effects import Arrive, Commit, Issue, Wait
from cake_ir.program import Expr, Op
from cake_ir.span import Span
from cake_verify.analyses.replay import Entry, Replay
from cake_verify.analyses.state import Member
from cake_verify.analyses.trips import spoken, written

WIDTH = 12
"""Most lines of a trace."""


def who(r: Replay, m: Member) -> str:
    """A member by its role's name, with member and CTA where there are several."""
    text = f"`{m.role}`"
    if r.plan.program.roles[m.role].members > 1:
        text += f" member {m.index}"
    if r.plan.ranks > 1:
        text += f" of CTA {m.cta.rank}"
    return text


def call(op: Op) -> str:
    """An operation as its author wrote it, shortened to name and barrier or view."""
    view = op.operands.get("view")
    named = op.attrs.get("barrier")
    if isinstance(view, Expr) and view.type is not None and spec_of(op).on == "view":
        return f"`{view_name(view)}.{op.name}`"
    return f"`lm.{op.name}({named})`" if named else f"`lm.{op.name}`"


def view_name(e: Expr) -> str:
    """The name under which a view operand is written."""
    if e.op == "var":
        return written(str(e.attrs["name"]), e.span)
    if e.op == "view":
        return str(e.attrs.get("view") or e.attrs.get("name"))
    if e.op == "stage":
        return f"{view_name(e.args[0])}[{spoken_slot(e.args[1])}]"
    return view_name(e.args[0]) if e.args else "view"


def spoken_slot(e: Expr) -> str:
    """A slot expression as text that can be written again."""
    if e.op == "prev":
        back = e.attrs.get("back", 1)
        return f"{spoken_slot(e.args[0])}.prev({'' if back == 1 else back})"
    if e.op == "at":
        return f"lm.at({e.attrs['ring']})"
    if e.op == "step":
        return f"lm.step({e.attrs['ring']})"
    return spoken(e)


def slot_text(r: Replay, op: Op, operand: str) -> str | None:
    """The text of the slot that a view operand selects, following view names to their definitions; None for unstaged views."""
    from cake_ir.program import Assign, statements

    e = op.operands.get(operand)
    role = r.plan.sites[op.id].role
    for _ in range(20):
        if not isinstance(e, Expr):
            return None
        if e.op == "stage":
            return spoken_slot(e.args[1])
        if e.op == "var":
            name = e.attrs["name"]
            e = next(
                (s.value for b in r.plan.program.body if b.role == role for s in statements(b.body)
                 if isinstance(s, Assign) and name in s.targets and isinstance(s.value, Expr)), None)  # fmt: skip
            continue
        if not e.args:
            stage = op.operands.get("stage")
            return spoken_slot(stage) if isinstance(stage, Expr) else None
        e = e.args[0]
    return None


def span_of(op: Op, *names: str) -> Span:
    """The span of the first named parameter that was written, else of the whole operation."""
    for n in names:
        if n in op.spans:
            return op.spans[n]
    return op.span


# ------------------------------------------------------------------ the trace


def place(r: Replay, op: Op, values: tuple[Any, ...], scope: dict[str, Any]) -> str:
    """Where an operation stands: iteration variables, slot and phase."""
    program = r.plan.program
    parts = []
    for loop in r.plan.sites[op.id].loops:
        if loop.var in scope:
            value = scope[loop.var]
            parts.append(f"{written(loop.var)}={_tile(value) if isinstance(value, tuple) else value}")
    n = r.slot(op, values)
    name = op.attrs.get("barrier")
    if n is not None and name in program.barriers:
        barrier = program.barriers[str(name)]
        stages = program.rings[barrier.pipeline].stages
        phase = n // stages - (1 if barrier.primed and r.is_a(op, Wait) else 0)
        parts.append(f"slot {n % stages} phase {phase}")
    else:
        for operand, _, _ in r.touches(op):
            value = values[r.plan.code.ops[op.id].index[operand]]
            stages = r.plan.slots(op, operand)
            if stages > 1:
                parts.append(f"slot {value[0] % stages}")
                break
    return " ".join(parts)


def _tile(value: tuple[Any, ...]) -> str:
    return "(" + ",".join(str(v) for v in value) + ")"


def line(r: Replay, m: Member, op: Op, values: tuple[Any, ...], scope: dict[str, Any], note: str = "") -> str:
    """One line of a trace: who, what, where, remark."""
    return f"{who(r, m).replace('`', ''):<24} | {call(op).strip('`')} @{op.span.line}  {place(r, op, values, scope)}{'  <- ' + note if note else ''}"


def trace(r: Replay, entries: Iterable[tuple[Entry | None, str]], last: tuple[Member, str] | None) -> tuple[str, ...]:
    """The entries in the order in which they happened, and what the last member was about to do."""
    seen: dict[int, tuple[Entry, str]] = {}
    for e, note in entries:
        if e is not None and (e.number not in seen or note):
            seen[e.number] = (e, note)
    lines = [line(r, e.member, e.op, e.values, e.scope, note) for _, (e, note) in sorted(seen.items())]
    pending = last[0].pending if last is not None else None
    if last is not None and pending is not None:
        m, note = last
        lines.append(line(r, m, r.plan.program.ops[pending[0]], pending, m.variables(), note))
    return tuple(lines[-WIDTH:])


def sync_points(r: Replay, members: Iterable[Member], upto: int) -> list[tuple[Entry, str]]:
    """The last release or acquire of each member before a point: what orders the two sides of a race."""
    out = []
    for m in members:
        e = r.before(upto, m, Wait, Arrive, Commit)
        if e is not None:
            out.append((e, ""))
    return out


__all__ = ["Issue", "call", "line", "place", "slot_text", "span_of", "spoken_slot", "sync_points", "trace", "view_name", "who"]

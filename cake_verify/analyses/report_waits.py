"""Blocked members and who could still give them what they wait for."""

from __future__ import annotations

from cake_ir.derive.sends import send_barriers
from cake_ir.derive.structure import members_at
from cake_ir.ops.effects import Issue
from cake_ir.program import Op
from cake_ir.record import record
from cake_verify.analyses.replay import Replay
from cake_verify.analyses.state import Bar, Member
from cake_verify.analyses.words import line, who


@record(eq=False)
class Blocked:
    """One blocked member: what it waits for in words, who could still give it, and the barrier object if it is one."""

    member: Member
    op: Op
    what: str
    missing: tuple[Member, ...]
    bar: Bar | None = None
    phase: int = 0


def contributors(r: Replay, bar: Bar) -> list[Member]:
    """The members that have to give to a barrier object in every phase."""
    name = r.plan.names[bar.decl]
    if name in send_barriers(r.plan.program):  # the receiver announces the bytes itself, whoever sends gives them
        roles = {s.role for s in send_barriers(r.plan.program)[name].sends}
        senders, gave = [m for m in r.world.members if m.role in roles], r.gifts(bar)
        return [m for m in senders if m.number in gave] or senders
    targets, landings = r.plan.targets(name), r.plan.landings(name)
    out = []
    for share in r.plan.arrivals[name].shares:
        indices = {i for s in share.sites for i in members_at(r.plan.program, s)} or set(range(share.members))
        loads = any(r.is_a(s.op, Issue) for s in share.sites)
        for m in r.world.members:
            reach = (landings[m.cta.rank],) if loads else targets[m.cta.rank]
            if m.role == share.role and m.index in indices and bar.cta in reach:
                out.append(m)
    return out


def waits_of(r: Replay, blocked: list[Blocked]) -> tuple[str, ...]:
    """The wait-for relation, one blocked member a line."""
    out = []
    for b in blocked[:8]:
        assert b.member.pending is not None
        note = f"waits for {b.what}"
        if b.missing:
            names = list(dict.fromkeys(who(r, x).replace("`", "") + (" (ended)" if x.done else "") for x in b.missing))
            note += "; missing: " + ", ".join(names[:3]) + (" .." if len(names) > 3 else "")
        out.append(line(r, b.member, b.op, b.member.pending, b.member.variables(), note.replace("`", "")))
    return tuple(out)

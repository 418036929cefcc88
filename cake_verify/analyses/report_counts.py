"""Two roles that step one ring by different counts, told from their loops."""

from __future__ import annotations

import re

from cake_ir.fault import Fault
from cake_ir.program import Expr
from cake_ir.span import Span
from cake_verify.analyses import trips
from cake_verify.analyses.replay import Replay
from cake_verify.analyses.report_waits import Blocked, waits_of
from cake_verify.analyses.words import who


def uneven(r: Replay, blocked: list[Blocked]) -> Fault | None:
    """Two roles that step one ring by different counts."""
    for b in blocked:
        if b.bar is None or not b.missing:
            continue
        name = r.plan.names[b.bar.decl]
        heads = counted(r, b.member.role, name), counted(r, b.missing[0].role, name)
        if b.missing[0].role == b.member.role or None in heads:
            continue
        (mine, here), (theirs, there) = heads  # type: ignore[misc]  # None is excluded above
        if mine == theirs or not _terms(mine) & _terms(theirs):
            continue
        first, second = ((b.member.role, here), (b.missing[0].role, there)) if len(mine) >= len(theirs) else ((b.missing[0].role, there), (b.member.role, here))
        message = f"`{b.member.role}` and `{b.missing[0].role}` step the ring of `{name}` by different counts"
        related = ((second[1], f"trip count of `{second[0]}`"), (b.op.span, f"{who(r, b.member)} waits here for {b.what}"))
        facts = {"barrier": name, b.member.role: mine, b.missing[0].role: theirs, "setting": str(r.setting)}
        return Fault("S008", message, first[1], related, facts=facts, trace=waits_of(r, blocked), help="both roles have to step the ring equally often")
    return None


def _terms(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_][A-Za-z_0-9.]*", text)) - {"ceil", "min", "max", "mul"}


def counted(r: Replay, role: str, barrier: str) -> tuple[str, Span] | None:
    """The canonical count of the loops around a role's operations on a barrier, and the head of the innermost one that is not constant."""
    resolve = trips.resolver_of(r.plan.program, role)
    for s in r.plan.sites.values():
        if s.role == role and s.op.attrs.get("barrier") == barrier:
            for loop in reversed(s.loops):
                if loop.kind == "range" and loop.lo is not None and loop.hi is not None:
                    return trips.canonical(Expr("sub", (resolve(loop.hi), resolve(loop.lo)))), loop.head
    return None

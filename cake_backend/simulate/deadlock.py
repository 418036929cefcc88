"""Why nothing can go on: every blocked member with the barrier it waits for, what has arrived there, and who would have to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_backend.simulate.barriers import MBarrier, RegisterPool
from cake_backend.simulate.faults import HELP
from cake_backend.simulate.state import Warp
from cake_ir.derive.structure import sites
from cake_ir.fault import Fault
from cake_ir.program import Op

if TYPE_CHECKING:
    from cake_backend.simulate.machine import Machine


def explain(m: Machine, warps: list[Warp]) -> Fault:
    """The deadlock as one fault: primary at the first blocked member's operation, the others related, all in the trace."""
    from cake_backend.simulate.machine import variables

    groups: dict[tuple[int, str, int, int], list[Warp]] = {}
    for w in warps:
        event = w.agent.pending
        groups.setdefault((w.cta.number, w.role.name, w.member, event[0] if event else -1), []).append(w)
    lines: list[str] = []
    where: list[tuple[int, Op, str]] = []
    facts: list[dict[str, object]] = []
    alive = {(w.cta.cluster.number, w.role.name) for w in warps}
    for (cta, role, member, op_id), members in sorted(groups.items()):
        first = members[0]
        why, gate = first.waits_for or ("nothing that can happen", None)
        state = f" ({gate.state})" if gate is not None and hasattr(gate, "state") else ""
        who = f"{role}[{member}]" if first.role.members > 1 else role
        some = f" ({len(members)} of {first.width} warps)" if len(members) < first.width and first.width > 1 else ""
        gone = _missing(m, first, alive)
        lines.append(f"{who}{some} of CTA {cta} waits for {why}{state}{variables(first)}{gone}")
        # What nobody else's progress could give comes first: registers, arrivals of roles that have ended, then meetings, then phases.
        order = 0 if isinstance(gate, RegisterPool) else 1 if gone else 3 if isinstance(gate, MBarrier) else 2
        where.append((order, m.program.ops[op_id] if op_id >= 0 else _first_op(m, role), f"{who} of CTA {cta} waits for {why}"))
        facts.append({"role": role, "member": member, "cta": cta, "waits_for": why})
    where.sort(key=lambda x: x[0])
    _, primary, text = where[0]
    related = tuple(dict.fromkeys((op.span, t) for _, op, t in where[1:6]))
    return Fault(
        "X001",
        f"deadlock: {text}, and nothing is left that could release it",
        primary.span,
        related=related,
        help=HELP["X001"],
        facts={"blocked": facts},
        trace=tuple(lines[:16]),
    )


def _first_op(m: Machine, role: str) -> Op:
    """Where a role begins, for a warp that has not come to its first operation."""
    return next(site.op for site in sites(m.program) if site.role == role)


def _missing(m: Machine, warp: Warp, running: set[tuple[int, str]]) -> str:
    """Which producers have ended, so that nobody is left to arrive."""
    gate = warp.waits_for[1] if warp.waits_for else None
    if not isinstance(gate, MBarrier):
        return ""
    b = m.program.barriers[gate.name]
    gone = [r for r in b.prod if (warp.cta.cluster.number, r) not in running]
    return f"; {', '.join(f'`{r}`' for r in gone)} has ended" if gone else ""

"""A barrier that counts on members which a condition keeps from ever arriving."""

from __future__ import annotations

from cake_ir.derive.structure import Site
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Expr, If
from cake_verify.analyses import edits
from cake_verify.analyses.replay import Replay
from cake_verify.analyses.report_waits import Blocked, waits_of
from cake_verify.analyses.state import Member
from cake_verify.analyses.words import spoken_slot, who


def kept_out(r: Replay, blocked: list[Blocked]) -> Fault | None:
    """A member that has been round its loop, and at no round through the condition under which it would arrive."""
    for b in blocked:
        if b.bar is None or b.bar.tx > 0:
            continue
        name = r.plan.names[b.bar.decl]
        for m in b.missing:
            share = next((s for s in r.plan.arrivals[name].shares if s.role == m.role), None)
            guard = _guard(r, m, share.sites) if share else None
            if share is None or guard is None:
                continue
            decl, ctas = r.plan.program.barriers[name], len(r.world.ctas)
            everyone = f" from all {ctas} CTAs of the cluster" if decl.scope == "cluster" and ctas > 1 else ""
            message = f"`{name}` counts {b.bar.count} arrivals a phase{everyone}, and {who(r, m)} never arrives: this condition keeps it from doing so"
            related = ((share.sites[0].op.span, "arrives here, for others only"), (b.op.span, f"{who(r, b.member)} waits for it here"), (decl.span, "declared here"))
            arrival = share.sites[0]
            stage = arrival.op.operands.get("stage")
            text = f"lm.arrive({name}, stage={spoken_slot(stage)})" if isinstance(stage, Expr) and arrival.op.name == "arrive" else ""
            moved = (Edit(arrival.stmt.span, "pass"), *edits.after(guard.span, text).edits)
            fixes = (Fix(moved, "likely", f"move `{text}` behind the condition"),) if text and len(share.sites) == 1 else ()
            return Fault("S008", message, guard.cond.span, related, fixes=fixes, trace=waits_of(r, blocked),
                         help="let every member that is counted arrive, also one that has nothing to hand over: move the arrival out of the condition",
                         facts={"barrier": name, "role": m.role, "expected": b.bar.count, "found": b.bar.count - b.bar.pend, "setting": str(r.setting)})  # fmt: skip
    return None


def _guard(r: Replay, m: Member, sites: tuple[Site, ...]) -> If | None:
    """The outermost condition around the only arrivals of a member, if none of them was reached in two rounds of the loop around it."""
    ops = {s.op.id for s in sites}
    if any(e.member is m and e.op.id in ops for e in r.log):
        return None
    for s in sites:
        guard = next((x for x, _ in s.around if isinstance(x, If)), None)
        loop = s.loops[-1].var if s.loops else ""
        rounds = {str(e.scope.get(loop)) for e in r.log if e.member is m and loop in e.scope}
        if guard is not None and len(rounds) > 1 and not _entered(r, m, guard, s):
            return guard
    return None


def _entered(r: Replay, m: Member, guard: If, arrival: Site) -> bool:
    """Whether a member has been, or waits, on the side of a condition on which the arrival stands."""
    side = next(arm for x, arm in arrival.around if x is guard)
    ops = [e.op.id for e in r.log if e.member is m] + ([m.pending[0]] if m.pending is not None else [])
    return any(x is guard and arm == side for number in ops for x, arm in r.plan.sites[number].around)

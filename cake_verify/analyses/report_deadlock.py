"""Deadlocks: who waits for whom, and which missing or misplaced step is to blame."""

from __future__ import annotations

from cake_ir.derive.clusters import guarded_loads
from cake_ir.derive.structure import Site
from cake_ir.fault import Fault, Fix
from cake_ir.ops.effects import Arrive, ClusterSync, Commit, Drain, Issue, Sync, Turn, Wait
from cake_ir.program import Expr, For, If, Op
from cake_ir.span import Span
from cake_verify.analyses import edits
from cake_verify.analyses.replay import Entry, Replay
from cake_verify.analyses.report_counts import uneven
from cake_verify.analyses.report_kept_out import kept_out
from cake_verify.analyses.report_site import engine_of
from cake_verify.analyses.report_waits import Blocked, contributors, waits_of
from cake_verify.analyses.state import Member
from cake_verify.analyses.trips import spoken
from cake_verify.analyses.words import call, slot_text, spoken_slot, trace, who


def deadlock(r: Replay) -> Fault:
    """The report of a run in which nobody can go on."""
    assert r.stuck is not None
    blocked = [_blocked(r, m) for m in r.stuck]
    return (
        _in_flight(r) or _turn(r, blocked) or _not_primed(r, blocked) or _never_comes(r, blocked) or _kept(r, blocked) or uneven(r, blocked)
        or _odd(r, blocked) or kept_out(r, blocked) or _cycle(r, blocked)
    )  # fmt: skip


def _blocked(r: Replay, m: Member) -> Blocked:
    assert m.pending is not None
    values = m.pending
    op = r.plan.program.ops[values[0]]
    name = str(op.attrs.get("barrier") or op.attrs.get("sync") or "")
    if r.is_a(op, Wait):
        n = r.slot(op, values) or 0
        barrier = r.plan.program.barriers[name]
        stages = r.plan.program.rings[barrier.pipeline].stages
        k = n // stages - (1 if barrier.primed else 0)
        bar = m.cta.bars[r.plan.number[name]][n % stages]
        gave = r.gifts(bar)
        missing = tuple(c for c in contributors(r, bar) if gave.get(c.number, 0) <= bar.n)
        have = bar.count - bar.pend
        what = f"`{name}` slot {bar.stage} phase {k}: {have} of {bar.count} arrivals" + (f", {bar.tx} bytes short" if bar.tx > 0 else "")
        return Blocked(m, op, what, missing, bar, k)
    if r.is_a(op, Turn):
        members = [x for x in r.world.members if x.cta is m.cta and x.role == m.role]
        before = members[(m.index - 1) % len(members)]
        return Blocked(m, op, f"its turn of `{name}`", (before,))
    if r.is_a(op, Sync):
        decl = r.plan.program.named[name]
        others = [x for x in r.world.members if x.cta is m.cta and x.role in decl.roles and x.waiting < 0 and not decl.per_member]
        return Blocked(m, op, f"the others at `{name}`", tuple(others))
    others = [x for x in r.world.members if x.waiting < 0]
    return Blocked(m, op, "the rest of the cluster", tuple(others))


def _not_primed(r: Replay, blocked: list[Blocked]) -> Fault | None:
    """A barrier that guards loads and whose first wait nobody can end, because only readers of these loads arrive on it."""
    guards = guarded_loads(r.plan.program)
    for b in blocked:
        if b.bar is None or b.phase or b.bar.n:
            continue
        name = r.plan.names[b.bar.decl]
        barrier = r.plan.program.barriers[name]
        frees = name in guards or any(
            s.role == b.member.role and engine_of(r, s.op) == "cp_async" and r.plan.ring_of(s.op, "view") == barrier.pipeline for s in r.plan.sites.values()
        )
        fills = any(r.is_a(s.op, Issue) for share in r.plan.arrivals[name].shares for s in share.sites)
        if barrier.primed or not frees or fills or b.member.role in barrier.prod or any(r.gifts(bar) for bar in b.member.cta.bars[b.bar.decl]):
            continue
        fix = edits.add_argument(barrier.span, "primed=True")
        if "primed" in barrier.spans:
            fix = edits.replace(barrier.spans["primed"], "True")
        message = f"`{name}` is not primed: its first wait can only be ended by the readers of the loads that come after it"
        return Fault("S023", message, barrier.span, ((b.op.span, f"{who(r, b.member)} waits here before anything is loaded"),), fixes=(fix,),
                     facts={"barrier": name, "expected": "primed=True", "setting": str(r.setting)}, trace=waits_of(r, blocked),
                     help="prime the barrier that frees slots: `primed=True`")  # fmt: skip
    return None


def _in_flight(r: Replay) -> Fault | None:
    """A slot released too early, which here ends in a deadlock instead of a race."""
    found = r.early_release()
    if found is None:
        return None
    return early_release(r, *found)


def early_release(r: Replay, release: Entry, group: int) -> Fault:
    """An arrival that frees a slot while a group of the same member reads it."""
    user = r.plan.program.ops[group]
    barrier = release.op.attrs["barrier"]
    issued = next(e for e in reversed(r.log[: release.number]) if e.member is release.member and e.op is user)
    product, stage = user.name == "mma", release.op.spans.get("stage")
    fixes = [edits.before(edits.level_with(r.plan, release.op, user), f"lm.{'mma_wait' if product or not r.is_a(user, Issue) else 'store_wait'}(pending=0)")]
    related, cause = [(user.span, "this is still reading the slot")], None
    drain = r.drain(release.number, release.member, "wgmma")
    if drain is not None and drain.number < issued.number:
        drain = None
    e = release.op.operands.get("stage")
    if stage is not None and release.flying and getattr(e, "op", "") == "var" and (drain is not None or not product):
        fixes.insert(0, edits.replace(stage, f"{spoken(e)}.prev()", "likely"))  # type: ignore[arg-type]  # a variable expression
        cause = "slot of its own round"
    if drain is not None and product and (lax := _lax_wait(r, drain, release, group)) is not None:
        left = _younger(release, group)
        fixes.insert(0, edits.replace(lax, str(left), title=f"leave {left} in flight"))
        related.append((lax, "this wait leaves it in flight"))
        cause = None
    if product:
        message = f"slot released on `{barrier}` while the MMA group that reads it may be in flight"
    else:
        message = f"slot released on `{barrier}` while a bulk store may still read it"
    facts = {"barrier": barrier, "role": release.member.role, "setting": str(r.setting)}
    lines = trace(r, [(issued, "may still read the slot"), (release, "releases it")], None)
    return Fault("S005", message, release.op.span, tuple(related), fixes=tuple(fixes), facts=facts, trace=lines, cause=cause,
                 help="release the slot of the group that the last wait retired, or wait for this one first")  # fmt: skip


def _younger(release: Entry, group: int) -> int:
    """Groups in flight at a release that were issued after the last one of `group`: what a wait may leave pending."""
    return next(n for n, (op, _) in enumerate(reversed(release.flying)) if op == group)


def _lax_wait(r: Replay, drain: Entry, release: Entry, group: int) -> Span | None:
    """The `pending=` of the wait between a group and its release, where that lets too many go on.

    Where the release names the slot of its own round, and a later wait ends the last group, the loop means to leave one in flight: the slot is wrong then.
    """
    pending = drain.op.attrs.get("pending", 0)
    if "pending" not in drain.op.spans or not isinstance(pending, int) or pending <= _younger(release, group):
        return None
    own = getattr(release.op.operands.get("stage"), "op", "") == "var"
    around = _enclosing(r, release.op)
    ends = any(x.op.id > release.op.id and x.role == release.member.role and x.op.name == drain.op.name and _enclosing(r, x.op) < around for x in r.plan.sites.values())
    return None if own and ends else drain.op.spans["pending"]


def _enclosing(r: Replay, op: Op) -> frozenset[int]:
    """The loops around an operation."""
    return frozenset(id(x) for x, _ in r.plan.sites[op.id].around if isinstance(x, For))


def _turn(r: Replay, blocked: list[Blocked]) -> Fault | None:
    """A turn that somebody took and never passed on."""
    for b in blocked:
        if not r.is_a(b.op, Turn):
            continue
        name = str(b.op.attrs["barrier"])
        turns = b.member.cta.turns[name]
        if sum(t[0] - t[1] for t in turns):
            continue
        mine = [e for e in r.log if e.member.cta is b.member.cta and e.op.attrs.get("barrier") == name]
        if not mine:
            continue
        holder = mine[-1]
        if holder.member is not b.member and not r.is_a(_next_op(r, holder.member), Turn) and not holder.member.done:
            continue
        after = holder
        for e in r.log[holder.number + 1 :]:
            if e.member is holder.member and r.is_a(e.op, Issue):
                after = e
            if e.member is holder.member and r.is_a(e.op, Drain):
                break
        fix = edits.after(edits.stmt_span(r.plan, after.op), f"lm.arrive({name})")
        message = f"{who(r, holder.member)} takes its turn of `{name}` and never passes it on"
        facts = {"turns": name, "role": holder.member.role, "setting": str(r.setting)}
        return Fault("S015", message, after.op.span, ((holder.op.span, "takes the turn"), (b.op.span, f"{who(r, b.member)} waits for it here")),
                     fixes=(fix,), facts=facts, trace=waits_of(r, blocked), help=f"every wait for a turn is followed by `lm.arrive({name})`")  # fmt: skip
    return None


def _next_op(r: Replay, m: Member) -> Op:
    return r.plan.program.ops[m.pending[0]] if m.pending is not None else r.plan.program.ops[0]


def _never_comes(r: Replay, blocked: list[Blocked]) -> Fault | None:
    """A wait whose every missing contributor has ended."""
    for b in blocked:
        if not b.missing or not all(x.done for x in b.missing):
            continue
        lost = b.missing[0]
        if r.is_a(b.op, Sync, ClusterSync):
            name = b.op.attrs.get("barrier") or "the cluster barrier"
            code = "S010" if r.is_a(b.op, Sync) else "S009"
            message = f"{who(r, b.member)} waits at `{name}`, and {who(r, lost)} ends without coming there"
            return Fault(code, message, b.op.span, _other_sites(r, b.op, lost.role), help="every participant comes to the barrier equally often",
                         facts={"barrier": str(name), "role": lost.role, "setting": str(r.setting)}, trace=waits_of(r, blocked))  # fmt: skip
        if b.bar is None:
            continue
        kept = _kept(r, [b])
        if kept is not None:
            return kept
        name = r.plan.names[b.bar.decl]
        share = next((s for s in r.plan.arrivals[name].shares if s.role == lost.role), None)
        sites = share.sites if share else ()
        related = [(s.op.span, f"`{lost.role}` gives here") for s in sites[:2]]
        related += _loops(r, b.op, sites[0].op if sites else None)
        counted = uneven(r, [b])
        if counted is not None:
            return counted
        message = f"{who(r, b.member)} waits for phase {b.phase} of `{name}`, but {who(r, lost)} has ended after {b.bar.n}"
        facts = {"barrier": name, "expected": b.phase + 1, "found": b.bar.n, "role": lost.role, "setting": str(r.setting)}
        return Fault("S008", message, b.op.span, tuple(related), facts=facts, trace=waits_of(r, blocked),
                     help="both roles have to step the ring equally often: compare their trip counts")  # fmt: skip
    return None


def _other_sites(r: Replay, op: Op, role: str) -> tuple[tuple[Span, str], ...]:
    name = op.attrs.get("barrier")
    return tuple((s.op.span, f"`{role}` comes here") for s in r.plan.sites.values() if s.role == role and s.op.attrs.get("barrier") == name)[:2]


def _loops(r: Replay, *ops: Op | None) -> list[tuple[Span, str]]:
    """The innermost loops around operations, to compare trip counts."""
    out = []
    for op in ops:
        if op is not None and r.plan.sites[op.id].loops:
            site = r.plan.sites[op.id]
            out.append((site.loops[-1].head, f"trip count of `{site.role}`"))
    return out


def _kept(r: Replay, blocked: list[Blocked]) -> Fault | None:
    """A slot that its reader waited for and never released although it has gone on."""
    guards = guarded_loads(r.plan.program)
    for b in blocked:
        if b.bar is None or r.plan.names[b.bar.decl] not in guards:
            continue
        name = r.plan.names[b.bar.decl]
        stages = r.plan.program.rings[r.plan.program.barriers[name].pipeline].stages
        fulls = {str(s.op.attrs["barrier"]) for s in guards[name]}
        views = {s.op.operands["view"].type.view for s in guards[name]}  # type: ignore[union-attr]  # loads have views
        gave = r.gifts(b.bar)
        for m in b.missing:
            taken = [e for e in r.log if e.member is m and r.is_a(e.op, Wait) and e.op.attrs.get("barrier") in fulls
                     and (r.slot(e.op, e.values) or 0) % stages == b.bar.stage]  # fmt: skip
            if len({r.slot(e.op, e.values) for e in taken}) <= gave.get(m.number, 0):
                continue
            slots = sorted({r.slot(e.op, e.values) or 0 for e in taken})
            kept = slots[min(gave.get(m.number, 0), len(slots) - 1)]
            if not m.done and kept == _latest(r, m, fulls) and _ahead(r, m, name):
                continue
            first = next(e for e in taken if r.slot(e.op, e.values) == slots[min(gave.get(m.number, 0), len(slots) - 1)])
            return _keeps(r, b, m, first, name, views, blocked)
    return None


def _latest(r: Replay, m: Member, fulls: set[str]) -> int | None:
    """The last slot count that a member has waited for on some barriers."""
    seen = [r.slot(e.op, e.values) or 0 for e in r.log if e.member is m and r.is_a(e.op, Wait) and e.op.attrs.get("barrier") in fulls]
    return max(seen, default=None)


def _ahead(r: Replay, m: Member, name: str) -> bool:
    """Whether an arrival on a barrier still lies in front of a blocked member."""
    at = _next_op(r, m).id
    return any(s.op.id > at and s.role == m.role and s.op.attrs.get("barrier") == name and r.is_a(s.op, Arrive, Commit) for s in r.plan.sites.values())


def _keeps(r: Replay, b: Blocked, m: Member, taken: Entry, name: str, views: set[str], blocked: list[Blocked]) -> Fault:
    n = r.slot(taken.op, taken.values) or 0
    program = r.plan.program
    last, operand, at = taken, None, taken
    for e in r.log[taken.number :]:
        if e.member is not m:
            continue
        for o, _, _ in r.touches(e.op):
            t = e.op.operands[o].type  # type: ignore[union-attr]  # touches name view operands
            value = e.values[r.plan.code.ops[e.op.id].index[o]]
            stages = r.plan.slots(e.op, o)
            if t.view in views and value[0] % stages == n % stages:  # type: ignore[union-attr]  # touches name view operands
                last, operand = e, o
                end = _ends(r, m, e)
                if end.number >= at.number:
                    at = end
    slot = (slot_text(r, last.op, operand) if operand else None) or "s"
    if edits.level_with(r.plan, last.op, at.op) != edits.stmt_span(r.plan, last.op):
        slot = f"lm.at({program.barriers[name].pipeline})"
    releases = [s for s in r.plan.sites.values() if s.role == m.role and s.op.attrs.get("barrier") == name and r.is_a(s.op, Arrive)]
    where = edits.level_with(r.plan, at.op, taken.op)
    if where != edits.stmt_span(r.plan, at.op):
        slot = _spoken_stage(taken.op) or slot
    release = f"lm.{'commit' if program.barriers[name].arrive == 'mma' else 'arrive'}({name}, stage={slot})"
    fixes: list[Fix] = [edits.after(where, release)]
    related = [(taken.op.span, "waits for the slot here"), (b.op.span, f"{who(r, b.member)} waits for its release here")]
    related += [(s.op.span, "other slots are released here") for s in releases[:2]]
    guard = _kept_by(r, m, taken, releases)
    if guard is not None:
        message = f"{who(r, m)} never releases slot {taken_slot(r, taken)} on `{name}`: this condition keeps it from doing so"
        facts = {"barrier": name, "role": m.role, "setting": str(r.setting)}
        return Fault("S008", message, guard.head, ((at.op.span, "the slot is free here"), *related), facts=facts, trace=waits_of(r, blocked),
                     fixes=tuple(Fix(f.edits, "idea", f.title) for f in fixes), help="each slot that is waited for is released once")  # fmt: skip
    message = f"{who(r, m)} never releases slot {taken_slot(r, taken)} on `{name}` after its last use"
    if at.op is not last.op:
        message += f": it is free once {call(at.op)} has returned"
    facts = {"barrier": name, "role": m.role, "expected": b.bar.count if b.bar else None, "found": b.bar.count - b.bar.pend if b.bar else None,
             "setting": str(r.setting)}  # fmt: skip
    return Fault("S008", message, at.op.span, tuple(related), fixes=tuple(fixes), facts=facts, trace=waits_of(r, blocked),
                 help=f"release it: `{release}`")  # fmt: skip


def _ends(r: Replay, m: Member, use: Entry) -> Entry:
    """The wait that retires an asynchronous use of a slot; the use itself if it is not asynchronous."""
    if r.is_a(use.op, Issue):
        for e in r.log[use.number + 1 :]:
            if e.member is m and r.is_a(e.op, Drain) and not any(op == use.op.id for op, _ in e.flying):
                return e
    return use


def _kept_by(r: Replay, m: Member, taken: Entry, releases: list[Site]) -> If | None:
    """A condition around a release that was false in the iteration in which this slot was due."""
    inside = {id(x) for x, _ in r.plan.sites[taken.op.id].around}
    n = r.slot(taken.op, taken.values) or 0
    outer = [loop.var for loop in r.plan.sites[taken.op.id].loops[:-1]]
    for s in releases:
        guard = next((x for x, _ in s.around if isinstance(x, If) and id(x) not in inside), None)
        stage = s.op.operands.get("stage")
        back = int(stage.attrs.get("back", 1)) if isinstance(stage, Expr) and stage.op == "prev" else 0  # type: ignore[call-overload]  # an int
        due = next((e for e in r.log if e.member is m and e.op is taken.op and r.slot(e.op, e.values) == n + back), None)
        if guard is not None and due is not None and all(due.scope.get(v) == taken.scope.get(v) for v in outer):
            return guard
    return None


def _spoken_stage(op: Op) -> str | None:
    stage = op.operands.get("stage")
    return spoken_slot(stage) if isinstance(stage, Expr) else None


def taken_slot(r: Replay, e: Entry) -> int:
    """The slot index that a wait names."""
    barrier = r.plan.program.barriers[str(e.op.attrs["barrier"])]
    return (r.slot(e.op, e.values) or 0) % r.plan.program.rings[barrier.pipeline].stages


def too_often(r: Replay, e: Entry) -> Fault:
    """A second arrival of one member for one slot."""
    name = str(e.op.attrs["barrier"])
    mine = [x for x in r.log[: e.number] if x.member is e.member and x.op.attrs.get("barrier") == name and r.is_a(x.op, Arrive)]
    first = next((x for x in reversed(mine) if r.slot(x.op, x.values) == r.slot(e.op, e.values)), mine[-1] if mine else None)
    message = f"{who(r, e.member)} arrives on `{name}` for slot {taken_slot(r, e)} more often than once a phase"
    related = ((first.op.span, "it has arrived here already"),) if first is not None and first.op is not e.op else ()
    facts = {"barrier": name, "role": e.member.role, "setting": str(r.setting)}
    return Fault("S022", message, e.op.span, related, fixes=(edits.remove(edits.stmt_span(r.plan, e.op)),), facts=facts,
                 trace=trace(r, [(first, "arrives"), (e, "arrives again")], None), help="each member arrives once for every slot that it used")  # fmt: skip


def _odd(r: Replay, blocked: list[Blocked]) -> Fault | None:
    """An arrival out of turn, some slots released twice and others never."""
    odd = r.odd_phase()
    if odd is None:
        return None
    e, twice = odd
    if twice:
        return too_often(r, e)
    name = e.op.attrs["barrier"]
    message = f"{who(r, e.member)} arrives on `{name}` for slot {taken_slot(r, e)} out of order: each slot is released once a phase"
    facts = {"barrier": name, "role": e.member.role, "setting": str(r.setting)}
    return Fault("S008", message, e.op.span, tuple((b.op.span, f"{who(r, b.member)} waits here") for b in blocked[:2]), facts=facts,
                 trace=waits_of(r, blocked), help="does the arrival name the slot that was used?")  # fmt: skip


def _cycle(r: Replay, blocked: list[Blocked]) -> Fault:
    """Members that wait for each other."""
    by = {b.member.number: b for b in blocked}
    path: list[int] = []
    at = blocked[0].member.number
    while at not in path:
        path.append(at)
        after = [x.number for x in by[at].missing if x.number in by]
        if not after:
            break
        at = after[0]
    ring = [by[n] for n in (path[path.index(at) :] if at in path else path)]
    text = ", ".join(f"{who(r, b.member)} waits for {b.what.split(':')[0]}" for b in ring[:3])
    code = "S023" if len(ring) > 1 else "S008"
    message = f"deadlock: {text}" if len(ring) > 1 else f"{text}, which nobody gives"
    related = tuple((b.op.span, f"{who(r, b.member)} waits for {b.what}") for b in ring[1:3])
    decls = [r.plan.program.barriers[r.plan.names[b.bar.decl]] for b in ring[:2] if b.bar is not None]
    related += tuple((d.span, f"`{d.name}` counts {r.plan.arrivals[d.name].count} arrivals") for d in decls)
    primary = ring[0]
    if r.is_a(primary.op, Sync) and primary.missing:
        related += _other_sites(r, primary.op, primary.missing[0].role)
    return Fault(code, message, primary.op.span, related, facts={"setting": str(r.setting), "members": [b.member.role for b in ring]},
                 trace=waits_of(r, ring + [b for b in blocked if b not in ring]), help="somebody in this circle has to give before it waits")  # fmt: skip

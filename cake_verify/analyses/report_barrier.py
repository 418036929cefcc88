"""Faults of barriers, counts, turns and things left over, told as faults."""

from __future__ import annotations

from cake_ir.derive.clusters import guarded_loads
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.ops.effects import Arrive, Commit, Issue, Turn, Wait
from cake_ir.program import Assign, Expr, Op, statements
from cake_ir.span import Span
from cake_verify.analyses import edits
from cake_verify.analyses.replay import Entry, Replay
from cake_verify.analyses.report_deadlock import early_release, too_often
from cake_verify.analyses.report_waits import contributors
from cake_verify.analyses.rows import what_is_left
from cake_verify.analyses.state import Bar, Found, Member
from cake_verify.analyses.words import call, sync_points, trace, who


def _now(r: Replay, found: Found) -> tuple[Member, Op]:
    m = found.member
    assert m is not None and m.pending is not None
    return m, r.plan.program.ops[m.pending[0]]


def _name(r: Replay, bar: Bar) -> str:
    return r.plan.names[bar.decl]


def _gifts(r: Replay, bar: Bar) -> list[tuple[Entry, str]]:
    """The latest contributions to one barrier object."""
    name = _name(r, bar)
    stages = r.plan.program.rings[r.plan.program.barriers[name].pipeline].stages
    found = [e for e in r.log if e.op.attrs.get("barrier") == name and not r.is_a(e.op, Wait) and (r.slot(e.op, e.values) or 0) % stages == bar.stage]
    return [(e, "") for e in found[-6:]]


def _cause(r: Replay) -> Fault | None:
    """What went wrong before an arrival that does not fit its phase: a slot freed too early, or an arrival made too often."""
    early = r.early_release()
    if early is not None:
        return early_release(r, *early)
    odd = r.odd_phase()
    return too_often(r, odd[0]) if odd is not None and odd[1] else None


def over_arrival(r: Replay, found: Found) -> Fault:
    """More arrivals in one phase than the barrier counts."""
    m, op = _now(r, found)
    bar: Bar = found.data["bar"]
    name = _name(r, bar)
    cause = _cause(r)
    if cause is not None:
        return cause
    message = f"`{name}` gets more arrivals in one phase than the {bar.count} it counts: {call(op)} of {who(r, m)} is one too many"
    related = [(r.plan.program.barriers[name].span, f"counts {bar.count}")]
    related += [(e.op.span, f"{who(r, e.member)} arrives here") for e, _ in _gifts(r, bar)[-2:] if e.op is not op]
    facts = {"barrier": name, "expected": bar.count, "found": bar.count - bar.pend + found.data["units"], "role": m.role, "setting": str(r.setting)}
    return Fault("S022", message, op.span, tuple(related), help="each producer arrives once a slot, after waiting for its turn of the ring",
                 facts=facts, trace=trace(r, _gifts(r, bar), (m, "one too many")))  # fmt: skip


def unstable(r: Replay, found: Found) -> Fault:
    """An arrival that may count for an earlier phase than the one it is meant for."""
    m, op = _now(r, found)
    bar: Bar = found.data["bar"]
    name = _name(r, bar)
    cause = _cause(r)
    if cause is not None:
        return cause
    odd = r.odd_phase()
    others = sorted({c.role for c in contributors(r, bar)} - {m.role}) or [m.role]
    verb = "brings its bytes" if r.is_a(op, Issue) else "arrives"
    message = f"{who(r, m)} {verb} on `{name}` without knowing that phase {max(bar.n, 1) - 1} is complete, so it may count for that phase"
    span: Span = op.span
    related = [(r.plan.program.barriers[name].span, f"also counts `{others[0]}`")]
    if odd is not None and odd[0].op is not op:
        related.append((odd[0].op.span, "this arrival already named another slot than the one in use"))
    facts = {"barrier": name, "phase": bar.n, "role": m.role, "setting": str(r.setting)}
    return Fault("S021", message, span, tuple(related), help="wait for the partner's barrier of this slot before arriving for the next phase",
                 facts=facts, trace=trace(r, [*_gifts(r, bar), *sync_points(r, (m,), len(r.log))], (m, "may count too early")))  # fmt: skip


def early_pass(r: Replay, found: Found) -> Fault:
    """A wait that parity may let pass one phase too early."""
    m, op = _now(r, found)
    bar: Bar = found.data["bar"]
    name, k = _name(r, bar), found.data["phase"]
    message = f"{who(r, m)} waits for phase {k} of `{name}` without having seen phase {k - 1}: parity lets it pass one phase early"
    waits = [e for e in r.log if e.member is m and r.is_a(e.op, Wait) and e.op.attrs.get("barrier") == name]
    return Fault("S019", message, op.span, tuple((e.op.span, "earlier wait") for e in waits[-1:]), facts={"barrier": name, "phase": k, "role": m.role,
                 "setting": str(r.setting)}, help="wait for every phase of a barrier, or not at all", trace=trace(r, [(e, "") for e in waits[-3:]], (m, "may pass early")))  # fmt: skip


def late_pass(r: Replay, found: Found) -> Fault:
    """A wait that may still be going on when the phase after it completes, so that parity hides it."""
    bar: Bar = found.data["bar"]
    name, k = _name(r, bar), found.data["phase"]
    odd = r.odd_phase()
    if odd is not None and odd[1]:
        return too_often(r, odd[0])
    m, op = _now(r, found)
    assert m.pending is not None
    n = r.slot(op, m.pending)
    if n is not None and r.is_a(op, Arrive) and n // len(m.cta.bars[bar.decl]) != k:
        return unstable(r, found)
    missing = found.data["missing"]
    barrier = r.plan.program.barriers[name]
    copies = {s.role for s in r.plan.sites.values() if any("w" in mode and r.plan.ring_of(s.op, o) == barrier.pipeline for o, mode, _ in r.touches(s.op))}
    if barrier.primed and k == 0 and copies & set(barrier.prod) and not copies & set(barrier.cons):
        fix = edits.replace(barrier.spans["primed"], "False") if "primed" in barrier.spans else None
        waiter = next((s.op for s in r.plan.sites.values() if s.op.attrs.get("barrier") == name and r.is_a(s.op, Wait)), op)
        return Fault("S020", f"`{name}` is primed, so its first wait passes before anything has been loaded", barrier.span,
                     ((waiter.span, "this wait"), (op.span, "completes its first phase")), fixes=(fix,) if fix else (),
                     facts={"barrier": name, "expected": "primed=False", "setting": str(r.setting)},
                     help="prime barriers that free slots, not those that fill them", trace=trace(r, _gifts(r, bar), (m, "completes the first phase")))  # fmt: skip
    early = _before_its_wait(r, m, name, n)
    if early is not None and r.is_a(op, Arrive):
        message = f"{who(r, m)} arrives on `{name}` for slot {bar.stage} before it has waited for `{early}`, so nobody may be using the slot yet"
        return Fault("S020", message, op.span, ((barrier.span, "frees the slot"),), facts={"barrier": name, "expected": f"lm.wait({early})", "setting": str(r.setting)},
                     help=f"wait for `{early}`, use the slot, then release it", trace=trace(r, _gifts(r, bar), (m, "arrives")))  # fmt: skip
    waits = [e for e in r.log if r.is_a(e.op, Wait) and e.op.attrs.get("barrier") == name and e.bits() & missing]
    waiter = waits[-1] if waits else None
    span = waiter.op.span if waiter else op.span
    subject = who(r, waiter.member) if waiter else who(r, m)
    if waiter is not None and not waiter.member.single and copies == {waiter.member.role}:
        return _ahead_of_its_lanes(r, bar, k, waiter, m, op)
    message = f"phase {k} of `{name}` may complete while {subject} still waits for phase {k - 1}: equal parity would keep it waiting"
    related = ((op.span, f"{who(r, m)} completes the later phase here"),) if waiter else ()
    related += ((barrier.span, "declared here"),)
    return Fault("S020", message, span, related, facts={"barrier": name, "phase": k, "setting": str(r.setting)},
                 help="whoever completes a phase has to know that all waits for the one before have returned: does every waiter also release?",
                 trace=trace(r, [(waiter, "waits"), *_gifts(r, bar)], (m, "completes the next phase")))  # fmt: skip


def _ahead_of_its_lanes(r: Replay, bar: Bar, k: int, waiter: Entry, m: Member, op: Op) -> Fault:
    """One thread of a role starts the copies of a phase, and nothing holds it back until the others have returned from the wait in front of them."""
    program, name, role = r.plan.program, _name(r, bar), waiter.member.role
    alone = next((b.name for b in program.named.values() if b.roles == (role,)), "")
    meet = alone or f"{role}_meet"
    edit = edits.after(waiter.op.span, f"lm.sync({meet})")
    if not alone:
        pad = "\n" + " " * (program.launch.span.column - 1)  # a declaration's span is that of its call
        edit = Fix((Edit(program.roles[role].span.end(), f"{pad}{meet} = lm.named_barrier({role})"), *edit.edits), "likely", f"let `{role}` meet behind the wait")
    message = f"other threads of `{role}` may still wait for `{name}` when the one that starts the copies has gone on and the slot is free again: equal parity would keep them waiting"
    related = ((op.span, f"{who(r, m)} completes the later phase here"), (program.barriers[name].span, "declared here"))
    return Fault("S020", message, waiter.op.span, related, f"let `{role}` meet behind the wait, or give the copies a role that does nothing else: one thread runs that", (edit,),
                 facts={"barrier": name, "phase": k, "role": role, "setting": str(r.setting)}, trace=trace(r, [(waiter, "waits"), *_gifts(r, bar)], (m, "completes the next phase")))  # fmt: skip


def _before_its_wait(r: Replay, m: Member, name: str, n: int | None) -> str | None:
    """A barrier that fills the slots which `name` frees, and for whose phase of this slot the member has not waited."""
    if n is None:
        return None
    for load in guarded_loads(r.plan.program).get(name, ()):
        full = str(load.op.attrs["barrier"])
        if m.role in r.plan.program.barriers[full].cons and not any(
            e.member is m and r.is_a(e.op, Wait) and e.op.attrs.get("barrier") == full and r.slot(e.op, e.values) == n for e in r.log
        ):
            return full
    return None


def left_open(r: Replay, found: Found) -> Fault:
    """A phase that has been given something and never completes."""
    bar: Bar = found.data["bar"]
    name = _name(r, bar)
    barrier = r.plan.program.barriers[name]
    gave = r.gifts(bar)
    least = min((gave.get(c.number, 0) for c in contributors(r, bar)), default=0)
    short = [c for c in contributors(r, bar) if gave.get(c.number, 0) == least]
    more = _gifts(r, bar)[-1:]
    message = f"`{name}` slot {bar.stage} ends with {bar.count - bar.pend} of {bar.count} arrivals"
    if bar.tx:
        message = f"`{name}` slot {bar.stage} ends {abs(bar.tx)} bytes {'short' if bar.tx > 0 else 'over'}"
    if short:
        message += f": {who(r, short[0])} gave less often than the others"
    sites = r.plan.arrivals[name].shares
    related = [(s.op.span, f"`{share.role}` gives here") for share in sites for s in share.sites][:3]
    facts = {"barrier": name, "expected": bar.count, "found": bar.count - bar.pend, "bytes": bar.tx, "setting": str(r.setting)}
    span = more[0][0].op.span if more else barrier.span
    return Fault(found.code, message, span, tuple(related), facts=facts, trace=trace(r, _gifts(r, bar), None), help="every contributor gives once a phase")


def never_waited(r: Replay, found: Found) -> Fault:
    """Asynchronous work that nobody observes before the kernel ends."""
    engine = found.data["engine"]
    facts = {"engine": engine, "count": found.data["count"], "setting": str(r.setting)}
    if engine == "tma":
        bar: Bar = found.data["bar"]
        name = _name(r, bar)
        load = next((e for e in reversed(r.log) if e.op.attrs.get("barrier") == name and r.is_a(e.op, Issue)), None)
        op = load.op if load else None
        message = f"{found.data['count']} phase(s) of loads on `{name}` are never waited for: the kernel may end while they write"
        return Fault("S025", message, op.span if op else r.plan.program.barriers[name].span, ((r.plan.program.barriers[name].span, "completes here"),),
                     facts=facts | {"barrier": name}, trace=trace(r, [(load, "never waited for")], None), help="wait for every load that is issued")  # fmt: skip
    if engine == "cp_async arrival":
        return _arrivals_at_exit(r, found.data["bar"], found.data["count"], facts)
    m = found.member
    assert m is not None
    early = r.early_release() if engine == "wgmma" else None
    if early is not None and early[0].member is m:  # one wait that is missing, or too lax, does both
        return early_release(r, *early)
    op = r.plan.program.ops[found.data["op"]] if found.data["op"] >= 0 else None
    issued = next((e for e in reversed(r.log) if e.member is m and (op is None or e.op is op)), None)
    block = [b for b in r.plan.program.body if b.role == m.role][-1]
    wait = {"wgmma": "lm.mma_wait(pending=0)", "cp_async": "lm.cp_wait(pending=0)", "tmem_ld": 'lm.tmem_wait("ld")', "tmem_st": 'lm.tmem_wait("st")'}.get(engine)
    what = {"wgmma": "MMA groups", "cp_async": "cp.async copies", "tcgen05": "MMAs", "tmem_ld": "tensor-memory loads", "tmem_st": "tensor-memory stores"}[engine]
    fixes = (edits.after(block.body[-1].span, wait),) if wait else ()
    message = f"{who(r, m)} ends with {what} in flight that nothing waits for"
    help_text = f"wait for them: `{wait}`" if wait else "commit them to a barrier that somebody waits for: `lm.commit(..)`"
    if engine == "tcgen05":
        issues = "copies to tensor memory" if op is not None and op.name == "tmem_copy" else "MMAs"
        message = f"{who(r, m)} issues {issues} whose result is never committed to a barrier: nobody can know when it is there"
    return Fault("S025", message, op.span if op else block.head, facts=facts | {"role": m.role}, fixes=fixes, help=help_text,
                 trace=trace(r, [(issued, "in flight at the end")], None))  # fmt: skip


def _arrivals_at_exit(r: Replay, bar: Bar, count: int, facts: dict[str, object]) -> Fault:
    """Arrivals that follow copies happen later than they are issued, so somebody has to see the last of them."""
    name = _name(r, bar)
    barrier = r.plan.program.barriers[name]
    gave = next((e for e in reversed(r.log) if e.op.attrs.get("barrier") == name and r.is_a(e.op, Arrive)), None)
    copying = {s.role for s in r.plan.sites.values() if any(isinstance(e, Issue) and e.engine == "cp_async" for e in r.effects(s.op))}
    message = f"`{name}` counts arrivals that follow cp.async copies, and nothing waits for its last {count} phase{'s' if count > 1 else ''}: they may come after the block has ended"
    fixes: tuple[Fix, ...] = ()
    if not copying & set(barrier.prod):
        message = f"`{name}` counts arrivals that follow cp.async copies, but {', '.join(f'`{p}`' for p in barrier.prod)} makes none: its last arrivals may come after the block has ended"
        kind = "member" if all(r.plan.program.roles[p].member_warps >= 4 for p in barrier.prod) else "warp"
        fixes = (edits.replace(barrier.spans["arrive"], f'"{kind}"'),) if "arrive" in barrier.spans else ()
    related = ((gave.op.span, "arrives here"),) if gave is not None else ()
    return Fault("S025", message, barrier.spans.get("arrive", barrier.span), related, fixes=fixes, facts=facts | {"barrier": name}, trace=trace(r, [(gave, "not waited for")], None),
                 help="arrive with `member` or `warp`, or wait for the last phase before the role ends")  # fmt: skip


def stores_at_exit(r: Replay, found: Found) -> Fault:
    """Bulk stores whose source may be gone before it is read."""
    m = found.member
    assert m is not None
    op = r.plan.program.ops[found.data["op"]]
    issued = next((e for e in reversed(r.log) if e.member is m and e.op is op), None)
    block = [b for b in r.plan.program.body if b.role == m.role][-1]
    drain = r.drain(len(r.log), m, "bulk")
    if drain is not None and issued is not None and drain.number > issued.number and "pending" in drain.op.spans:
        where = drain.op.spans["pending"]
        return Fault("S011", f"{who(r, m)} ends while its last bulk store may still read shared memory: this wait leaves {len(m.bulk)} in flight", where,
                     ((op.span, "still in flight"),), fixes=(edits.replace(where, "0"),), facts={"role": m.role, "expected_pending": 0, "setting": str(r.setting)},
                     help="wait for all of them: `lm.store_wait(pending=0)`", trace=trace(r, [(issued, "in flight at the end"), (drain, "")], None))  # fmt: skip
    message = f"{who(r, m)} ends while its last bulk store may still read shared memory"
    return Fault("S011", message, op.span, fixes=(edits.after(block.body[-1].span, "lm.store_wait(pending=0)"),), facts={"role": m.role, "setting": str(r.setting)},
                 help="wait before the role ends: `lm.store_wait(pending=0)`", trace=trace(r, [(issued, "in flight at the end")], None))  # fmt: skip


def turns(r: Replay, found: Found) -> Fault:
    """Turns taken or passed on out of order, or not equally often."""
    name = found.data["turns"]
    decl = r.plan.program.turns[name]
    if found.data["held"]:
        arrives = next((s.op for s in r.plan.sites.values() if s.op.attrs.get("barrier") == name), None)
        message = f"the members of `{decl.role}` do not take their turns of `{name}` equally often: {found.data['taken']}"
        return Fault("S015", message, arrives.span if arrives else decl.span, ((decl.span, "declared here"),), facts={"turns": name, "taken": found.data["taken"],
                     "setting": str(r.setting)}, help="every member waits for its turn and passes it on once an iteration")  # fmt: skip
    m, op = _now(r, found)
    message = f"{who(r, m)} passes on the turn of `{name}` without holding it"
    mine = [e for e in r.log if e.member is m]
    since = max((i for i, e in enumerate(mine) if r.is_a(e.op, Turn)), default=-1) + 1
    first = next((e.op for e in mine[since:] if r.is_a(e.op, Issue)), op)  # a turn is for the work that is passed on with it
    fixes = (edits.before(edits.level_with(r.plan, first, op), f"lm.wait({name})"),)
    return Fault("S015", message, op.span, ((decl.span, "declared here"),), fixes=fixes, facts={"turns": name, "role": m.role, "setting": str(r.setting)},
                 help=f"wait for the turn first: `lm.wait({name})`", trace=trace(r, [], (m, "has no turn to pass on")))  # fmt: skip


def named(r: Replay, found: Found) -> Fault:
    """A named barrier with more threads than it counts."""
    m, op = _now(r, found)
    meet = found.data["meet"]
    name = str(op.attrs.get("barrier") or op.attrs.get("sync"))
    decl = r.plan.program.named.get(name)
    message = f"{who(r, m)} brings `{name}` to {meet.got} threads, it counts {meet.need}"
    related = ((decl.span, f"counts {meet.need} threads"),) if decl else ()
    return Fault("S010", message, op.span, related, facts={"barrier": name, "expected": meet.need, "found": meet.got, "role": m.role, "setting": str(r.setting)},
                 help="declare every role that comes to the barrier", trace=trace(r, [], (m, "one too many")))  # fmt: skip


def coordinates(r: Replay, found: Found) -> Fault:
    """Slices of one multicast that come from different places."""
    m, op = _now(r, found)
    message = f"the CTAs of the cluster load slices of different tiles with one multicast: {list(found.data['other'])} and {list(found.data['coords'])}"
    return Fault("S030", message, op.spans.get("coords", op.span), facts={"expected": list(found.data["other"]), "found": list(found.data["coords"]),
                 "setting": str(r.setting)}, help="coordinates of a multicast load are the same in every CTA that shares it; is the axis the right one?",
                 trace=trace(r, [], (m, "other coordinates")))  # fmt: skip


def before_step(r: Replay, found: Found) -> Fault:
    """A slot looked back at before the ring has been stepped often enough."""
    m, op = _now(r, found)
    message = f"{call(op)} names a slot before the first: the ring has not been stepped that often yet (position {found.data['slot']})"
    return Fault("S031", message, op.spans.get("stage", op.span), facts={"slot": found.data["slot"], "setting": str(r.setting)},
                 help="guard the look back, e.g. `if k > 0:`", trace=trace(r, [], (m, "no such slot")))  # fmt: skip


def outside_view(r: Replay, found: Found) -> Fault:
    """A rectangle that leaves its view."""
    m, op = _now(r, found)
    d = found.data
    if "tmem" in d:
        region = r.plan.program.tmems[d["tmem"]]
        message = f"{call(op)} touches columns {d['col']}..{d['col'] + d['cols']} of `{region.name}`, which has {region.shape[1]}"
        return Fault("S032", message, _taken_from(r, m.role, op), ((op.span, "touched here"), (region.span, f"{region.shape[1]} columns")), facts={"tmem": region.name, "setting": str(r.setting)},
                     help="the columns have to lie inside the region for every slot and iteration", trace=trace(r, [], (m, "outside the region")))  # fmt: skip
    view = r.plan.program.views[d["view"]]
    if "stage" in d:
        message = f"{call(op)} uses slot {d['stage']} of `{d['view']}`, which has {view.stages} stage{'s' if view.stages > 1 else ''}"
        return Fault("S032", message, op.span, ((view.spans.get("stage", view.span), f"{view.stages} here"),), facts={"view": d["view"], "expected": view.stages,
                     "found": d["stage"] + 1, "setting": str(r.setting)}, help=f"give `{d['view']}` as many stages as {'the ring has' if d.get('ring') else 'there are numbers that name one'}", trace=trace(r, [], (m, "no such stage")))  # fmt: skip
    shape = "x".join(map(str, view.shape))
    message = f"{call(op)} touches rows {d['row']}..{d['row'] + d['rows']}, columns {d['col']}..{d['col'] + d['cols']} of `{d['view']}`, which is {shape}"
    return Fault("S032", message, _taken_from(r, m.role, op), ((op.span, "touched here"), (view.span, f"{shape} elements")), facts={"view": d["view"], "setting": str(r.setting)},
                 help="the part has to lie inside the view for every member", trace=trace(r, [], (m, "outside the view")))  # fmt: skip


def outside_cluster(r: Replay, found: Found) -> Fault:
    """A send to a CTA that the cluster does not have."""
    m, op = _now(r, found)
    rank, ranks = found.data["rank"], found.data["ranks"]
    launch = r.plan.program.launch
    return Fault("S038", f"{call(op)} goes to CTA {rank}, the cluster has {ranks}", op.spans.get("cta", op.span), ((launch.spans.get("cluster", launch.span), f"{ranks} CTAs"),),
                 facts={"expected": ranks, "found": rank, "setting": str(r.setting)}, help="`cta` is a rank in the cluster, as `lm.cta_rank()` gives it",
                 trace=trace(r, [], (m, "no such CTA")))  # fmt: skip


def _taken_from(r: Replay, role: str, op: Op) -> Span:
    """Where the part of a view that an operation uses is taken: the line that names it, or the operation itself."""
    for operand, _, _ in r.touches(op):
        e = op.operands[operand]
        if isinstance(e, Expr) and e.op == "var":
            for block in r.plan.program.body:
                for s in statements(block.body) if block.role == role else ():
                    if isinstance(s, Assign) and e.attrs["name"] in s.targets:
                        return s.span
    return op.span


def rows_left(r: Replay, found: Found) -> Fault:
    """A store past the end of its sequence."""
    m, op = _now(r, found)
    d = found.data
    found_range = d["range"]
    read = r.plan.program.ops[found_range.read]
    message = (f"{call(op)} writes {d['rows']} rows from row {d['first']} on, but the sequence ends at row {d['end']}: "
               f"the rows behind it belong to the next one")  # fmt: skip
    fix = what_is_left(r.plan, op, found_range)
    fixes = [fix] if fix is not None else []
    return Fault("S013", message, op.spans.get("rows", op.span), ((read.span, f"the sequence starts at `{found_range.tensor}[{d['index']}]` = {d['start']}"),),
                 fixes=tuple(fixes), facts={"tensor": found_range.tensor, "expected": d["end"] - d["first"], "found": d["rows"], "setting": str(r.setting)},
                 help="store only the rows that are left: " + (fixes[0].title if fixes else "`rows=`"), trace=trace(r, [], (m, "past the end")))  # fmt: skip


__all__ = ["Arrive", "Commit"]

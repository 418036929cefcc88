"""Races told as faults: reads that may come too early, writes that may come before earlier accesses have ended."""

from __future__ import annotations

from dataclasses import replace

from cake_ir.derive.clusters import guarded_loads
from cake_ir.fault import Cause, Fault, Fix
from cake_ir.ops.effects import Arrive, Commit, Drain, Sync, Wait
from cake_ir.program import Assign, Expr, Op, statements
from cake_ir.span import Span
from cake_verify.analyses import edits
from cake_verify.analyses.replay import Entry, Replay
from cake_verify.analyses.report_landed import handed_in_flight, landed_before
from cake_verify.analyses.report_site import Site, engine_of, title, view_of
from cake_verify.analyses.slices import Slice, slices
from cake_verify.analyses.state import Found, Member
from cake_verify.analyses.trips import spoken, written
from cake_verify.analyses.words import call, slot_text, span_of, spoken_slot, sync_points, trace, who


def race(r: Replay, found: Found) -> Fault:
    """A read that may come before the write it needs (S004), or a write that may come before earlier accesses have ended (S003)."""
    fault = _race(r, Site(r, found), found)
    if fault.code == "S007":  # where views overlap, what looks mendable is often meant to lie elsewhere
        fault = replace(fault, fixes=tuple(replace(f, grade="idea") for f in fault.fixes))
    return fault


def _race(r: Replay, s: Site, found: Found) -> Fault:
    missing = found.data["missing"]
    reader = r.unknown_reader(s.atom, s.cta, missing) if found.code == "S003" else None
    if reader is not None:
        return _overwrite(r, s, *reader, missing)
    write = r.last_write(s.atom, s.cta)
    assert write is not None
    return _read(r, s, *write, missing) if found.code == "S004" else _twice(r, s, *write)


# ------------------------------------------------------------------ read before it is written


def _read(r: Replay, s: Site, write: Entry, operand: str, missing: int) -> Fault:
    program, m = r.plan.program, s.member
    name = s.view
    other = view_of(write.op, operand)
    related = [(write.op.span, f"written here by {who(r, write.member)}")]
    lines = trace(r, [(write, "writes"), *sync_points(r, (write.member, m), len(r.log))], (m, "reads, not ordered after the write"))
    facts: dict[str, object] = {"view": name, "reader": m.role, "writer": write.member.role, "setting": str(r.setting)}
    fixes: list[Fix] = []
    where = edits.stmt_span(r.plan, s.op)
    engine = engine_of(r, write.op)
    code = "S004"
    if other != name:
        code = "S007"
    if engine == "tma":
        barrier = str(write.op.attrs["barrier"])
        message = f"{call(s.op)} reads `{name}` before {who(r, m)} has waited for `{barrier}`, on which the load that fills it completes"
        related[0] = (write.op.span, f"filled here, complete when `{barrier}` is")
        slot = slot_text(r, s.op, s.operand)
        stage = f", stage={slot}" if slot else ""
        fixes.append(edits.before(where, f"lm.wait({barrier}{stage})"))
        facts |= {"barrier": barrier, "expected": f"lm.wait({barrier})"}
    elif engine == "tmem_st" and (freed := _unfinished(r, write)) is not None:
        code = "S014"
        message = f"{call(s.op)} reads `{name}` while the store of {who(r, write.member)} into it may be in flight: nothing waits for it before `{freed.op.attrs.get('barrier')}`"
        fixes.append(edits.before(edits.stmt_span(r.plan, freed.op), 'lm.tmem_wait("st")'))
    elif engine == "cp_async" and write.member is m:
        return _copies(r, s, write, missing, lines, facts)
    elif engine == "cp_async" and (given := handed_in_flight(r, write)) is not None:
        message = f"{call(given.op)} hands on `{name}` while {call(write.op)} may be in flight: its threads do not wait for what they copied"
        tensor_core = any(o == s.operand and proxy == "async" for o, _, proxy in r.touches(s.op))
        related = [(write.op.span, "copied here"), (s.span, f"{who(r, m)} reads it here")]
        fix = landed_before(r, write, given, tensor_core)
        return Fault(code, message, given.op.span, tuple(related), fix.title, (fix,), facts, lines)
    elif write.member is m:
        sync = edits.own_barrier(program, m.role)
        message = f"{call(s.op)} reads bytes of `{name}` that other lanes of {who(r, m)} wrote, and nothing makes them meet in between"
        related[0] = (write.op.span, "written here, by other lanes too")
        if sync:
            fixes.append(edits.meet_before(r.plan, s.op, sync))
    elif write.member.role == m.role and code == "S004" and (part := _shared_part(r, s.op)) is not None:
        own = f"{part.n} * {m.role}.index"
        message = f"{who(r, m)} reads what {who(r, write.member)} writes: this part of `{name}` starts at {spoken(part.lo)} for all members of `{m.role}`"
        related = [(s.span, f"{who(r, m)} reads it here"), *related]
        return Fault(code, message, part.span, tuple(related), f"give each member a part of its own, from `{own}` on", (edits.replace(part.lo.span, own),), facts, lines)
    else:
        message = f"{who(r, m)} reads `{name}` without being ordered after {who(r, write.member)}, which writes it"
        shared = [b.name for b in program.named.values() if {m.role, write.member.role} <= set(b.roles) and not b.per_member]
        if shared:
            fixes.append(edits.before(where, f"lm.sync({shared[0]})"))
    return Fault(code, message, s.span, tuple(related), help=title(fixes, "order the read after the write"), fixes=tuple(fixes), facts=facts, trace=lines)


def _shared_part(r: Replay, op: Op) -> Slice | None:
    """A part of a view that an operation takes from one constant place on in every member of a role with several."""
    if r.plan.program.roles[r.plan.sites[op.id].role].members == 1:
        return None
    return next((x for x in slices(r.plan, op) if x.lo.op == "const" and x.lo.span.line), None)


def _unfinished(r: Replay, write: Entry) -> Entry | None:
    """The arrival by which a tensor-memory store was handed over without having been waited for; None where it was."""
    freed = next((e for e in r.log[write.number :] if e.member is write.member and r.is_a(e.op, Arrive)), None)
    drained = r.drain(freed.number, write.member, "tmem_st") if freed is not None else None
    return freed if freed is not None and (drained is None or drained.number < write.number) else None


def _copies(r: Replay, s: Site, write: Entry, missing: int, lines: tuple[str, ...], facts: dict[str, object]) -> Fault:
    """A read of bytes that the member's own cp.async copies bring."""
    m, name = s.member, s.view
    drain = r.drain(len(r.log), m, "cp_async")
    left = next((i for i, (bits, _) in enumerate(m.cp) if bits & missing), None)
    related = [(write.op.span, "copied here")]
    fixes: list[Fix] = []
    cause: Cause | None = None
    mine = [e for e in r.log[write.number :] if e.member is m]
    closed = next((e for e in mine if r.is_a(e.op, Commit)), None)
    waited = next((e for e in mine if r.is_a(e.op, Drain)), None)
    if closed is None or (waited is not None and waited.number < closed.number):
        until = waited.number if waited is not None else len(r.log)
        copy = next(e for e in reversed(r.log[:until]) if e.member is m and engine_of(r, e.op) == "cp_async")
        message = f"{call(s.op)} reads `{name}` while the copies that fill it are in a group that nothing has closed before the wait"
        fixes.append(edits.after(edits.stmt_span(r.plan, copy.op), "lm.cp_commit()"))
        span = copy.op.span
        related = [(s.span, f"reads `{name}`")]
    elif left is not None and drain is not None and drain.number < write.number:
        cause = "copied behind the wait"
        message = f"{call(s.op)} reads `{name}`, which {call(write.op)} fills behind the last `lm.cp_wait`: nothing waits for that copy"
        span = write.op.spans.get("stage", write.op.span)
        related = [(drain.op.span, "waits for the copies in front of it"), (s.span, f"reads `{name}`")]
    elif left is not None:
        since = [] if drain is None else [e for e in r.log[drain.number :] if e.member is m and r.is_a(e.op, Commit)]
        pending = max(0, len(m.cp) - left - 1 - len(since))
        message = f"{call(s.op)} reads `{name}` while the copies that fill it may be in flight, and nothing waits for them"
        facts |= {"expected": pending}
        span = s.span
        if drain is not None and "pending" in drain.op.spans:
            found = int(drain.op.attrs.get("pending") or 0)  # type: ignore[call-overload]  # a compile-time int
            facts |= {"found": found}
            message = f"`lm.cp_wait(pending={found})` leaves the copies of the tile that is read next in flight: at most {pending} groups may be pending"
            fixes.append(edits.replace(drain.op.spans["pending"], str(pending)))
            related.append((s.span, f"reads `{name}`"))
            span = drain.op.spans["pending"]
        else:
            meet = r.before(len(r.log), m, Sync)
            place = meet.op if meet is not None and meet.number > write.number else s.op
            fixes.append(edits.before(edits.stmt_span(r.plan, place), f"lm.cp_wait(pending={pending})"))
            if place is not s.op:
                span = place.span
                related.append((s.span, f"reads `{name}`"))
    else:
        sync = edits.own_barrier(r.plan.program, m.role)
        cause = "own copies"
        message = f"{call(s.op)} reads bytes of `{name}` that other threads of {who(r, m)} copied: `lm.cp_wait` covers a thread's own copies only"
        span = s.span
        if drain is not None:
            related.append((drain.op.span, "here each thread waits for its own copies"))
            span = drain.op.span
            related.append((s.span, f"reads `{name}`"))
            if sync:
                fixes.append(edits.after(edits.stmt_span(r.plan, drain.op), f"lm.sync({sync})"))
    return Fault("S004", message, span, tuple(related), help=title(fixes, "copy into the slot that was read last, or wait behind the copy" if cause == "copied behind the wait" else "wait for the group, then let all threads meet"),
                 fixes=tuple(fixes), facts=facts, trace=lines, cause=cause)  # fmt: skip


# ------------------------------------------------------------------ written before earlier reads have ended


def _overwrite(r: Replay, s: Site, read: Entry, operand: str, missing: int) -> Fault:
    program, m = r.plan.program, s.member
    name, victim = view_of(read.op, operand), read.member
    facts: dict[str, object] = {"view": name, "reader": victim.role, "writer": m.role, "setting": str(r.setting)}
    code = "S003" if s.view == name else "S007"
    engine = engine_of(r, read.op)
    guard = _guard(r, s, victim)
    release = _release(r, victim, guard, read, s)
    head = [(read, "reads"), (release, "releases"), *sync_points(r, (victim, m), len(r.log))]
    lines = trace(r, head, (m, "overwrites"))
    reads = (span_of(read.op, operand) if operand in ("a", "b") else read.op.span, f"{who(r, victim)} reads `{name}` here")
    writes = (s.span, f"{who(r, m)} overwrites it here")
    if victim.cta is not m.cta and guard and program.barriers[guard].scope != "cluster":
        barrier = program.barriers[guard]
        fixes: tuple[Fix, ...] = (edits.add_argument(barrier.span, 'scope="cluster"', "certain"),)
        if "scope" in barrier.spans:
            fixes = (edits.replace(barrier.spans["scope"], '"cluster"', "certain"),)
        writer = f"{call(s.op)} writes them in another CTA" if s.op.name == "send" else "the multicast load writes them in every CTA of the cluster"
        message = f"`{guard}` frees slots of `{name}` for this CTA only, but {writer}"
        return Fault("S012", message, barrier.span, (writes, reads), fixes=fixes, trace=lines, facts=facts | {"barrier": guard, "expected": "cluster", "found": "cta"},
                     help='count the arrivals of all CTAs that read the slot: `scope="cluster"`')  # fmt: skip
    if engine == "wgmma" and release is not None and release.number > read.number and r.still_flying(release, read, operand):
        return _released_in_flight(r, s, read, release, name, reads, writes, facts, lines)
    if engine == "tmem_ld":
        freed = next((e for e in r.log[read.number + 1 :] if e.member is victim and r.is_a(e.op, Arrive)), None)
        drained = r.drain(freed.number, victim, "tmem_ld") if freed is not None else None
        if freed is not None and freed.number > read.number and (drained is None or drained.number < read.number):
            return _load_in_flight(r, read, freed, name, reads, writes, facts, lines)
    if engine == "bulk":
        return _store_in_flight(r, s, read, release, name, reads, writes, facts, lines, missing, code)
    if victim is m:
        return _own_lanes(r, s, read, name, reads, facts, lines, code)
    return _unordered(r, s, read, release, guard, name, reads, writes, facts, lines, code)


def _released_in_flight(r: Replay, s: Site, read: Entry, release: Entry, name: str, reads: tuple[Span, str], writes: tuple[Span, str],
                        facts: dict[str, object], lines: tuple[str, ...]) -> Fault:  # fmt: skip
    younger = sum(1 for e in r.log[read.number + 1 : release.number] if e.member is read.member and engine_of(r, e.op) == "wgmma")
    barrier = release.op.attrs.get("barrier")
    message = f"a slot of `{name}` is released on `{barrier}` while an MMA group may still read it"
    fixes = (edits.before(edits.level_with(r.plan, release.op, read.op), f"lm.mma_wait(pending={younger})"),)
    drain = r.drain(release.number, read.member, "wgmma")
    late = ((drain.op.span, f"this wait leaves {drain.op.attrs.get('pending')} in flight"),) if drain is not None and drain.number > read.number else ()
    return Fault("S005", message, release.op.span, (*late, reads, writes), fixes=fixes, trace=lines, facts=facts | {"barrier": barrier, "expected_pending": younger},
                 help=f"wait for the group first: `lm.mma_wait(pending={younger})`")  # fmt: skip


def _load_in_flight(r: Replay, read: Entry, freed: Entry, name: str, reads: tuple[Span, str], writes: tuple[Span, str], facts: dict[str, object],
                    lines: tuple[str, ...]) -> Fault:  # fmt: skip
    barrier = freed.op.attrs.get("barrier")
    fix = edits.before(edits.level_with(r.plan, freed.op, read.op), 'lm.tmem_wait("ld")')
    message = f"`{name}` is released on `{barrier}` while a load from it may be in flight"
    return Fault("S014", message, freed.op.span, (reads, writes), fixes=(fix,), help='wait for the load first: `lm.tmem_wait("ld")`',
                 facts=facts | {"barrier": barrier}, trace=lines)  # fmt: skip


def _store_in_flight(r: Replay, s: Site, read: Entry, release: Entry | None, name: str, reads: tuple[Span, str], writes: tuple[Span, str],
                     facts: dict[str, object], lines: tuple[str, ...], missing: int, code: str) -> Fault:  # fmt: skip
    m, victim = s.member, read.member
    later = sum(1 for e in r.log[read.number + 1 :] if e.member is victim and engine_of(r, e.op) == "bulk")
    waited = missing & victim.E
    sync = edits.own_barrier(r.plan.program, victim.role)
    span, related = s.span, [(read.op.span, f"the copy engine may still read `{name}` for this store")]
    fixes: list[Fix] = []
    if victim is m and waited:
        message = f"{call(s.op)} may overwrite `{name}` before a store has read it: only the issuing thread has waited for that store"
        if sync:
            fixes.append(edits.meet_before(r.plan, s.op, sync))
    elif (drain := r.drain(len(r.log), victim, "bulk")) is not None and drain.number > read.number and "pending" in drain.op.spans:
        left = sum(1 for e in r.log[read.number + 1 : drain.number] if e.member is victim and engine_of(r, e.op) == "bulk")
        message = f"`lm.store_wait(pending={drain.op.attrs.get('pending')})` leaves the store in flight whose source {call(s.op)} overwrites"
        span = drain.op.spans["pending"]
        related.append((s.span, f"{who(r, m)} overwrites `{name}` here"))
        fixes.append(edits.replace(span, str(left)))
        facts = facts | {"expected_pending": left}
    else:
        message = f"{call(s.op)} may overwrite `{name}` while an earlier bulk store still reads it"
        line = f"lm.store_wait(pending={later})"
        meet = r.before(len(r.log), m, Sync)
        if victim.role == m.role and meet is not None and meet.number > read.number:
            fixes.append(edits.before(edits.stmt_span(r.plan, meet.op), line))
        elif release is not None and victim is not m:
            fixes.append(edits.before(edits.stmt_span(r.plan, release.op), line))
            message = f"`{name}` is released on `{release.op.attrs.get('barrier')}` while a bulk store may still read it"
            span = release.op.span
            related.append(writes)
        else:
            fixes.append(edits.before(edits.stmt_span(r.plan, s.op), line, *([f"lm.sync({sync})"] if sync else [])))
        facts = facts | {"expected_pending": later}
    return Fault("S011", message, span, tuple(related), help=title(fixes, "wait until the store has read its source, then let all threads meet"),
                 fixes=tuple(fixes), facts=facts, trace=lines)  # fmt: skip


def _own_lanes(r: Replay, s: Site, read: Entry, name: str, reads: tuple[Span, str], facts: dict[str, object], lines: tuple[str, ...], code: str) -> Fault:
    m = s.member
    sync = edits.own_barrier(r.plan.program, m.role)
    fixes = [edits.meet_before(r.plan, s.op, sync)] if sync else []
    message = f"{call(s.op)} overwrites `{s.view}` while other lanes of {who(r, m)} may still read `{name}`: nothing makes them meet in between"
    return Fault(code, message, s.span, (reads,), help=title(fixes, "let all threads meet between the read and the write"), fixes=tuple(fixes),
                 facts=facts, trace=lines)  # fmt: skip


def _unordered(r: Replay, s: Site, read: Entry, release: Entry | None, guard: str | None, name: str, reads: tuple[Span, str], writes: tuple[Span, str],
               facts: dict[str, object], lines: tuple[str, ...], code: str) -> Fault:  # fmt: skip
    m = s.member
    fixes: list[Fix] = []
    skipped = _skipped(r, s, read)
    if skipped is None and release is not None and release.number < read.number:
        message = f"{call(read.op)} reads `{name}` after {who(r, read.member)} has released the slot on `{release.op.attrs.get('barrier')}`"
        return Fault(code, message, release.op.span, (reads, writes), help="release the slot after its last read",
                     facts=facts | {"barrier": release.op.attrs.get("barrier")}, trace=lines)  # fmt: skip
    message = f"{call(s.op)} overwrites `{name}` without waiting until {who(r, read.member)} has read it"
    slot = s.op.operands.get("stage")
    step = _stepped(r, m.role, r.plan.program.barriers[skipped].pipeline) if skipped and not isinstance(slot, Expr) else None
    if step is not None:
        message = f"{call(s.op)} overwrites `{name}` without having waited for `{skipped}`, on which {who(r, read.member)} releases it"
        fixes.append(edits.after(step[0], f"lm.wait({skipped}, stage={step[1]})"))
    if skipped and isinstance(slot, Expr):
        message = f"{call(s.op)} overwrites `{name}` without having waited for `{skipped}`, on which {who(r, read.member)} releases it"
        fixes.append(edits.before(edits.stmt_span(r.plan, s.op), f"lm.wait({skipped}, stage={spoken_slot(slot)})"))
    return Fault(code, message, s.span, (reads,), help=title(fixes, "wait for the readers before writing"), fixes=tuple(fixes),
                 facts=facts | ({"barrier": guard} if guard else {}), trace=lines)  # fmt: skip


def _skipped(r: Replay, s: Site, read: Entry) -> str | None:
    """A barrier on which the reader releases slots of this ring and for whose phase of this slot the writer has not waited."""
    program, m = r.plan.program, s.member
    name = str(s.op.attrs.get("barrier"))
    at = r.plan.code.ops[s.op.id].index.get("stage")
    if name not in program.barriers or at is None:
        for b in program.barriers.values():
            if b.primed and read.member.role in b.prod and m.role in b.cons and r.before(len(r.log), m, Wait, barrier=b.name) is None:
                return b.name
        return None
    ring, n = program.barriers[name].pipeline, s.values[at]
    for b in program.barriers.values():
        if b.name == name or b.pipeline != ring or read.member.role not in b.prod or m.role not in b.cons:
            continue
        if not any(e.member is m and e.op.attrs.get("barrier") == b.name and r.is_a(e.op, Wait) and r.slot(e.op, e.values) == n for e in r.log):
            return b.name
    return None


def _stepped(r: Replay, role: str, ring: str) -> tuple[Span, str] | None:
    """The statement in which a role steps a ring, and the name of the slot."""
    for block in r.plan.program.body:
        if block.role == role:
            for stmt in statements(block.body):
                if isinstance(stmt, Assign) and isinstance(stmt.value, Expr) and stmt.value.op == "step" and stmt.value.attrs.get("ring") == ring:
                    return stmt.span, written(stmt.targets[0])
    return None


def _guard(r: Replay, s: Site, victim: Member) -> str | None:
    """The barrier whose wait guards a load, or a send into the slots that `victim` reads."""
    if s.op.name == "send":
        name, barriers = str(s.op.attrs["barrier"]), r.plan.program.barriers
        mine = [b for b in barriers.values() if b.name != name and b.pipeline == barriers[name].pipeline and victim.role in b.prod and s.member.role in b.cons]
        return mine[0].name if len(mine) == 1 else None
    return next((name for name, loads in guarded_loads(r.plan.program).items() if any(x.op is s.op for x in loads)), None)


def _release(r: Replay, victim: Member, guard: str | None, read: Entry, s: Site) -> Entry | None:
    """The arrival with which the reader gave the slot away: the first one of that slot after the read, else its last one before it."""
    if guard is None:
        return None
    slot = s.values[r.plan.code.ops[s.op.id].index["stage"]] if "stage" in r.plan.code.ops[s.op.id].index else None
    stages = r.plan.program.rings[r.plan.program.barriers[guard].pipeline].stages
    mine = [e for e in r.log if e.member is victim and r.is_a(e.op, Arrive, Commit) and e.op.attrs.get("barrier") == guard]
    same = [e for e in mine if slot is None or (r.slot(e.op, e.values) or 0) % stages == slot % stages]
    later = [e for e in same if e.number > read.number]
    return later[0] if later else same[-1] if same else None


def _twice(r: Replay, s: Site, write: Entry, operand: str) -> Fault:
    """Two writes of the same bytes that nothing orders."""
    m, name = s.member, s.view
    lines = trace(r, [(write, "writes"), *sync_points(r, (write.member, m), len(r.log))], (m, "writes again"))
    facts = {"view": name, "setting": str(r.setting)}
    related = ((write.op.span, f"written here by {who(r, write.member)}"),)
    code = "S003" if view_of(write.op, operand) == name else "S007"
    if write.op is s.op and write.member.cta is not m.cta:
        message = f"CTAs {write.member.cta.rank} and {m.cta.rank} of the cluster send to the same bytes of `{name}`, and nothing orders them"
        return Fault(code, message, s.span, (), help="send each CTA's part to rows of its own, by `lm.cta_rank()` or by the tile", facts=facts, trace=lines)
    if write.op is s.op and write.member.role == m.role and write.member is not m:
        message = f"every member of `{m.role}` writes the same bytes of `{name}` with this operation"
        return Fault(code, message, s.op.span, (), help="members repeat what a role's body says: split the rows with `.index`, or let one member do it",
                     facts=facts, trace=lines)  # fmt: skip
    fixes: list[Fix] = []
    if engine_of(r, write.op) == "tma":
        message = f"{call(s.op)} writes `{name}` before the load that was writing it is known to be complete"
    elif s.op.name == "tmem_copy" and write.member is m:
        message = f"{call(s.op)} writes columns of `{name}` while the product that {who(r, m)} issued into them may be in flight: copies follow a thread's products in no order"
        return Fault(code, message, s.span, related, help="copy to columns of its own, or wait for a `lm.commit` behind the product first", facts=facts, trace=lines)
    elif write.op.name == s.op.name == "send" and write.member is m:
        message = f"{call(s.op)} brings bytes of `{name}` that another send of the same phase brings, and nothing orders them"
    elif write.member is m:
        message = f"{call(s.op)} writes bytes of `{name}` that other lanes of {who(r, m)} may still be writing"
        sync = edits.own_barrier(r.plan.program, m.role)
        if sync:
            fixes.append(edits.before(edits.stmt_span(r.plan, s.op), f"lm.sync({sync})"))
    else:
        message = f"{who(r, m)} and {who(r, write.member)} write the same bytes of `{name}`, and nothing orders them"
    slot = s.op.operands.get("stage")
    waits = [b for b in r.plan.program.barriers.values() if m.role in b.cons and b.primed and s.op.attrs.get("barrier")
             and b.pipeline == r.plan.program.barriers[str(s.op.attrs["barrier"])].pipeline]  # fmt: skip
    if waits and isinstance(slot, Expr) and not fixes:
        fixes.append(edits.before(edits.stmt_span(r.plan, s.op), f"lm.wait({waits[0].name}, stage={spoken_slot(slot)})"))
    return Fault(code, message, s.span, related, help=title(fixes, "order the two writes"), fixes=tuple(fixes), facts=facts, trace=lines)

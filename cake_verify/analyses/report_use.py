"""Unfenced accesses, unwritten bytes and registers, and registers in flight, told as faults."""

from __future__ import annotations

from cake_ir.fault import Fault, Fix
from cake_ir.ops.effects import Drain, FenceProxy, GridDependency, Issue, Sync
from cake_ir.ops.scales import region_of
from cake_ir.program import Expr, For, If, Op
from cake_ir.span import Span
from cake_verify.analyses import edits
from cake_verify.analyses.replay import Replay
from cake_verify.analyses.report_deadlock import early_release
from cake_verify.analyses.report_landed import handed_in_flight, landed_before
from cake_verify.analyses.report_site import Site, engine_of, view_of
from cake_verify.analyses.report_tensor import unwritten_columns
from cake_verify.analyses.state import Found, Member
from cake_verify.analyses.words import call, sync_points, trace, who


def unfenced(r: Replay, found: Found) -> Fault:
    """An async-proxy access of bytes last written through the generic proxy, without the writer's fence in between."""
    s = Site(r, found)
    write = r.last_write(s.atom, s.cta)
    assert write is not None
    entry, operand = write
    name = view_of(entry.op, operand)
    verb = "overwrites" if found.data["write"] else "reads"
    lines = trace(r, [(entry, "ordinary write"), *sync_points(r, (entry.member, s.member), len(r.log))], (s.member, f"{verb} through the async proxy"))
    message = f"{call(s.op)} {verb} `{name}` through the async proxy, but no `lm.fence_proxy()` of its writer comes after the ordinary write"
    where = edits.stmt_span(r.plan, entry.op)
    fix = edits.after(where, "lm.fence_proxy()")
    own = edits.own_barrier(r.plan.program, s.member.role)
    if found.data["missing"] & s.member.F and own:
        message = f"{call(s.op)} {verb} `{name}` before all threads that wrote it are known to have passed their `lm.fence_proxy()`"
        fix = edits.before(edits.stmt_span(r.plan, s.op), f"lm.sync({own})")
    if engine_of(r, entry.op) == "cp_async":
        drain = next((e for e in r.log[entry.number :] if e.member is entry.member and r.is_a(e.op, Drain)), None)
        if (given := handed_in_flight(r, entry)) is not None:
            fix = landed_before(r, entry, given, fence=True)
            message = f"{call(s.op)} {verb} `{name}` through the async proxy: {call(entry.op)} writes when it lands, and its threads do not wait for that in front of a fence"
        elif drain is not None:
            fix = edits.after(edits.stmt_span(r.plan, drain.op), "lm.fence_proxy()")
    span, related = entry.op.span, ((s.span, f"{who(r, s.member)} {verb} it here through the async proxy"),)
    if found.data["missing"] & s.member.F and own:
        span, related = s.span, ((entry.op.span, f"{who(r, entry.member)} writes it here"),)
    return Fault("S006", message, span, related, fixes=(fix,), trace=lines, facts={"view": name, "writer": entry.member.role, "setting": str(r.setting)},
                 help="the threads that wrote fence after the write and before they meet the thread that issues")  # fmt: skip


def tensor_overlap(r: Replay, found: Found) -> Fault:
    """A product whose result lies in columns that it reads as an operand."""
    s = Site(r, found)
    program = r.plan.program
    names = [t.tmem for n in ("acc", "a", "b", "scale_a", "scale_b") if (t := region_of(s.op.operands.get(n))) is not None]
    decls = [program.tmems[n] for n in dict.fromkeys(names)]
    decls = [d for d in decls if any(d is not o and d.col < o.col + o.width and o.col < d.col + d.width for o in decls)] or decls
    message = f"{call(s.op)} writes its result to columns of tensor memory that it reads as an operand: " + " and ".join(f"`{d.name}`" for d in decls) + " overlap"
    return Fault("S007", message, s.op.span, tuple((d.spans.get("cols", d.span), f"columns {d.col} to {d.col + d.width - 1}") for d in decls),
                 "give each region columns of its own", facts={"regions": [d.name for d in decls], "setting": str(r.setting)})  # fmt: skip


def uninitialised(r: Replay, found: Found) -> Fault:
    """A read of memory that nothing has written, told where the write is missing if that can be guessed."""
    s = Site(r, found)
    lines = trace(r, sync_points(r, (s.member,), len(r.log)), (s.member, "reads"))
    if s.view in r.plan.program.tmems:
        return unwritten_columns(r, s, lines)
    writes = [x.op for x in r.plan.sites.values() if any("w" in m and view_of(x.op, o) == s.view for o, m, _ in r.touches(x.op))]
    message = f"{call(s.op)} reads bytes of `{s.view}` that nothing has written"
    span, related = s.span, tuple((o.span, f"writes `{s.view}`") for o in writes[:3])
    reader = (s.span, f"{who(r, s.member)} reads `{s.view}` here")
    if s.view in r.plan.program.views:
        if not writes:
            found_at = _unfilled(r, s)
            if found_at is not None:
                span, message = found_at
                related = (reader,)
        elif len(writes) == 1 and _same_slot(r, s, writes[0]):
            span, related = writes[0].span, (reader,)
            message = f"this fills only a part of what {call(s.op)} reads of `{s.view}`"
    return Fault("S027", message, span, related, help="fill the slot before it is read; does the read use the slot that was filled?",
                 facts={"view": s.view, "setting": str(r.setting)}, trace=lines)  # fmt: skip


def _unfilled(r: Replay, s: Site) -> tuple[Span, str] | None:
    """Where the write of a view that nothing writes would stand: among the loads of what is read with it, or before the fence."""
    if engine_of(r, s.op) == "bulk":
        fence = r.before(len(r.log), s.member, FenceProxy) or r.before(len(r.log), s.member, Sync)
        return (fence.op.span, f"nothing has written `{s.view}` before this: {call(s.op)} reads what was there") if fence is not None else None
    ring = r.plan.ring_of(s.op, s.operand)
    copies = [x.op for x in r.plan.sites.values() if r.is_a(x.op, Issue) and any("w" in m and r.plan.ring_of(x.op, o) == ring for o, m, _ in r.touches(x.op))]
    if ring is None or not copies:
        return None
    brings = ", ".join(f"`{v}`" for v in sorted({view_of(o, "view") for o in copies}))
    return copies[-1].span, f"nothing fills `{s.view}`: the copies into slots of `{ring}` bring {brings} only"


def _same_slot(r: Replay, s: Site, write: Op) -> bool:
    """Whether the only write of the view has been executed for the slot that is read."""
    n = s.values[r.plan.code.ops[s.op.id].index[s.operand]][0] % r.plan.slots(s.op, s.operand)
    at = r.plan.code.ops[write.id].index.get("view")
    return at is not None and any(e.op is write and e.values[at][0] % r.plan.slots(write, "view") == n for e in r.log)


# ------------------------------------------------------------------ registers


def places(r: Replay, m: Member, mask: int) -> list[str]:
    """The names of a mask's places."""
    names = r.plan.places[m.role].names
    return [n for i, n in enumerate(names) if mask >> i & 1]


def in_flight(r: Replay, found: Found) -> Fault:
    """An accumulator or an A fragment touched while a group uses it."""
    m = found.member
    assert m is not None and m.pending is not None
    op = r.plan.program.ops[m.pending[0]]
    mask = found.data["places"]
    name = places(r, m, mask)[0]
    verb = "overwritten" if found.data["write"] else "read"
    if found.data.get("tmem"):
        message = f"`{name}` is used before `lm.tmem_wait(\"ld\")` has made its load complete"
        fix = edits.before(edits.stmt_span(r.plan, op), 'lm.tmem_wait("ld")')
        return Fault("S014", message, op.span, fixes=(fix,), help="wait for the loads first", facts={"place": name}, trace=trace(r, [], (m, "uses it")))
    at = max(i for i, g in enumerate(m.mma) if (g[1] | g[2]) & mask)
    group = m.mma[at]
    user = r.plan.program.ops[group[3]]
    pending = len(m.mma) - 1 - at
    issued = next((e for e in reversed(r.log) if e.member is m and e.op is user), None)
    drain = r.drain(len(r.log), m, "wgmma")
    early = r.early_release()
    if early is not None and early[0].member is m and not found.data.get("tmem"):
        return early_release(r, *early)
    use = "accumulates into it" if group[1] & mask else "reads it as operand"
    message = f"`{name}` is {verb} while an MMA group that {use} may be in flight"
    fixes: list[Fix] = []
    span, related = op.span, ((user.span, f"this group {use}"),)
    if drain is not None and issued is not None and drain.number > issued.number and "pending" in drain.op.spans and not r.retired(drain) and _at_hand(r, drain.op, op):
        span, related = drain.op.spans["pending"], (*related, (op.span, f"`{name}` is {verb} here"))
        message = f"`lm.mma_wait(pending={drain.op.attrs.get('pending')})` leaves the group in flight that {use.replace('it', f'`{name}`', 1)}"
        fixes.append(edits.replace(drain.op.spans["pending"], str(pending)))
    fixes.append(edits.before(edits.stmt_span(r.plan, op), f"lm.mma_wait(pending={pending})"))
    return Fault("S005", message, span, related, help=f"wait for the group first: `lm.mma_wait(pending={pending})`",
                 fixes=tuple(fixes), facts={"place": name, "expected_pending": pending, "in_flight": len(m.mma), "setting": str(r.setting)},
                 trace=trace(r, [(issued, "issues the group"), (drain, "")], (m, f"{name} is {verb}")))  # fmt: skip


def _at_hand(r: Replay, drain: Op, use: Op) -> bool:
    """Whether a wait stands in no loop that the use is not in: else it does its own work there."""
    loops = {id(x) for x, _ in r.plan.sites[use.id].around if isinstance(x, For)}
    return all(id(x) in loops for x, _ in r.plan.sites[drain.id].around if isinstance(x, For))


def undefined(r: Replay, found: Found) -> Fault:
    """A fragment read before it has a value."""
    m = found.member
    assert m is not None and m.pending is not None
    op = r.plan.program.ops[m.pending[0]]
    name = places(r, m, found.data["places"])[0]
    start = op.operands.get("init")
    is_acc = isinstance(op.operands.get("acc"), Expr)
    message = f"`{name}` is {'accumulated into' if is_acc else 'read'} before it has a value"
    fixes = []
    if is_acc and start is not None and "init" in op.spans:
        fixes.append(edits.replace(op.spans["init"], "True", "idea"))
    return Fault("S029", message, op.span, help="start it: `init=` of the first MMA, or `init=0.0` where the fragment is declared", fixes=tuple(fixes),
                 facts={"place": name, "setting": str(r.setting)}, trace=trace(r, [], (m, "reads it")))  # fmt: skip


# ------------------------------------------------------------------ the launch before


def too_early(r: Replay, found: Found) -> Fault:
    """An access of data of the launch before this one by a member that nothing orders after the wait for it."""
    m = found.member
    assert m is not None and m.pending is not None
    op, tensor = r.plan.program.ops[m.pending[0]], found.data["tensor"]
    decl = r.plan.program.tensors[tensor]
    waits = [s for s in r.plan.sites.values() if any(isinstance(e, GridDependency) and e.kind == "wait" for e in r.effects(s.op))]
    own = [s for s in waits if s.role == m.role]
    guard = next((s for s, _ in own[0].around[::-1] if isinstance(s, If)), None) if own else None
    message = f"{call(op)} touches `{tensor}` before {who(r, m)} has waited for the launch that comes before"
    related = [(s.op.span, f"`{s.role}` waits here") for s in waits[:2]] + [(decl.span, "not `.const`, so the launch before may still work on it")]
    fixes = [edits.before(edits.stmt_span(r.plan, op), "lm.pdl_wait()")]
    span = op.span
    if own and guard is not None and own[0].op.id < op.id:
        span, related = guard.head, [(op.span, f"touches `{tensor}`"), *related]
        fixes = [edits.replace(guard.span, "lm.pdl_wait()", "likely", "wait without the condition")] if len(guard.then) == 1 and not guard.orelse else fixes
    elif own and own[0].op.id > op.id and edits.stmt_span(r.plan, own[0].op).line != edits.stmt_span(r.plan, op).line:
        fixes = [edits.move_before(edits.stmt_span(r.plan, own[0].op), edits.stmt_span(r.plan, op), "lm.pdl_wait()")]
        span, related = own[0].op.span, [(op.span, f"touches `{tensor}` before"), *related]
    return Fault("S016", message, span, tuple(related), help=fixes[0].title, fixes=tuple(fixes), facts={"tensor": tensor, "role": m.role, "setting": str(r.setting)},
                 trace=trace(r, [], (m, "touches it")))  # fmt: skip

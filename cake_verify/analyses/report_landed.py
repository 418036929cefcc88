"""Copies of `cp.async` that their threads hand on by an arrival without having waited for them."""

from __future__ import annotations

from cake_ir.fault import Fix
from cake_ir.ops.effects import Arrive, Commit, Drain, FenceProxy
from cake_verify.analyses import edits
from cake_verify.analyses.replay import Entry, Replay
from cake_verify.analyses.report_site import engine_of


def handed_in_flight(r: Replay, copy: Entry) -> Entry | None:
    """The first arrival of the copying member behind a copy, where nothing waits for its copies in between."""
    mine = [e for e in r.log[copy.number :] if e.member is copy.member]
    given = next((e for e in mine if r.is_a(e.op, Arrive)), None)
    drained = next((e for e in mine if r.is_a(e.op, Drain)), None)
    return given if given is not None and (drained is None or given.number < drained.number) else None


def landed_before(r: Replay, copy: Entry, given: Entry, fence: bool) -> Fix:
    """What is missing between the last copy of a slot and the arrival that hands it on: the group closed, waited for, and with `fence` fenced."""
    mine = [e for e in r.log[copy.number : given.number] if e.member is copy.member]
    last = next((e for e in reversed(mine) if engine_of(r, e.op) == "cp_async"), copy)
    behind = [e for e in mine if e.number > last.number]
    closed = next((e for e in behind if r.is_a(e.op, Commit)), None)
    fenced = any(r.is_a(e.op, FenceProxy) and (closed is None or e.number > closed.number) for e in behind)
    lines = [*([] if closed else ["lm.cp_commit()"]), "lm.cp_wait(pending=0)", *(["lm.fence_proxy()"] if fence and not fenced else [])]
    return edits.after(edits.stmt_span(r.plan, (closed or last).op), *lines)

"""Faults of a whole grid told: accesses of global memory that nothing orders, and flags that nobody raises."""

from __future__ import annotations

from typing import Any

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Flag, Issue
from cake_ir.program import If, Op, Program
from cake_ir.span import Span
from cake_verify.analyses import edits
from cake_verify.analyses.grid_cells import FLAG, READ, UPDATE, WRITE, Access, Box
from cake_verify.analyses.grid_walk import GridRun
from cake_verify.analyses.running_places import apart
from cake_verify.analyses.state import Member
from cake_verify.analyses.told_apart import by_member, in_front, never_meet, one_of_two, own_sequences, shares
from cake_verify.analyses.trips import written
from cake_verify.analyses.words import call

_VERBS = {READ: "reads", WRITE: "writes", UPDATE: "updates", FLAG: "signals"}


def grid_faults(runs: list[GridRun]) -> tuple[list[Fault], list[Fault]]:
    """(faults, open questions) of the grids that were walked."""
    faults: list[Fault] = []
    doubts: list[Fault] = []
    for run in runs:
        if run.found is not None and "now" in run.found.data:
            faults.append({"S028": _replaced, "S039": _race, "S040": _signals, "S042": _too_soon}[run.found.code](run, run.found.data))
        elif run.waits:
            faults.append(_never(run))
        elif run.why or run.found is not None:
            doubts.append(Fault("S090", f"not decided: what blocks of one launch do to tensors that they share ({run.why or 'the walk of the grid stopped'})",
                                run.plan.program.span if run.at is None else run.plan.program.ops[run.at].span, severity="note", facts={"setting": _setting(run)}))  # fmt: skip
        for spin, update in run.open[:1]:
            if not doubts:
                doubts.append(_unclear(run, spin, update))
        if not doubts:
            doubts += [_open(run, *doubt) for doubt in _open_ones(run)[:1]]
    return faults[:1], [] if faults else doubts[:1]


def _open_ones(run: GridRun) -> list[tuple[str, Access, Access]]:
    """The pairs of which nothing tells that they are apart."""
    return [(tensor, old, now) for tensor, old, now in run.doubts if not _apart(run.plan.program, old, now)]


def _apart(program: Program, old: Access, now: Access) -> bool:
    """Whether the text tells that two accesses touch different elements, or that one of them happens."""
    pair = program, old.op, now.op
    if apart(*pair, old.tile == now.tile) or never_meet(*pair) or (old.told and now.told and one_of_two(*pair)):
        return True
    if old.member.role == now.member.role and old.member.index != now.member.index and by_member(*pair):
        return True
    if old.tile == now.tile:
        return (old.op != now.op or old.member is now.member) and in_front(*pair)
    return shares(*pair) or (len(old.tile[1]) == len(now.tile[1]) == 1 and own_sequences(*pair, (old.tile[1][0], now.tile[1][0])))


def _setting(run: GridRun) -> str:
    head = str(run.setting).rpartition("grid of")[0]
    return f"{head}grid of {run.clusters} cluster{'s' if run.clusters != 1 else ''}"


def _op(run: GridRun, a: Access) -> Op:
    return run.plan.program.ops[a.op]


def _who(run: GridRun, m: Member, scope: dict[str, Any]) -> str:
    text = f"`{m.role}`"
    if run.plan.program.roles[m.role].members > 1:
        text += f" member {m.index}"
    return text + f" of CTA {scope['#cta']}"


def _line(run: GridRun, m: Member, op: Op, scope: dict[str, Any], note: str) -> str:
    parts = []
    for loop in run.plan.sites[op.id].loops:
        if loop.var in scope:
            value = scope[loop.var]
            parts.append(f"{written(loop.var)}={'(' + ','.join(map(str, value)) + ')' if isinstance(value, tuple) else value}")
    return f"{_who(run, m, scope).replace('`', ''):<24} | {call(op).strip('`')} @{op.span.line}  {' '.join(parts)}  <- {note}"


def _elements(box: Box) -> str:
    """A box as its author writes coordinates: innermost first."""
    return "(" + ", ".join(str(a) if b == a + 1 else f"{a}..{b - 1}" for a, b in box) + ")"


def _shared(a: Box, b: Box) -> Box:
    return tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))


def _race(run: GridRun, data: dict[str, Any]) -> Fault:
    """Two accesses of which one writes, and nothing says which comes first."""
    program, tensor = run.plan.program, str(data["tensor"])
    old, now = data["old"], data["now"]
    if old.kind == READ and now.kind != READ and old.member is not now.member:
        old, now = now, old  # who reads is the one that could wait
    first, second = _op(run, old), _op(run, now)
    common = _elements(_shared(old.box, now.box))
    lines = (_line(run, old.member, first, old.scope, f"{_VERBS[old.kind]} {tensor}{common}"), _line(run, now.member, second, now.scope, f"{_VERBS[now.kind]} it too"))
    facts: dict[str, object] = {"tensor": tensor, "role": now.member.role, "other": old.member.role, "elements": common, "setting": _setting(run)}
    related: tuple[tuple[Span, str], ...] = ((first.span, f"{_who(run, old.member, old.scope)} {_VERBS[old.kind]} them here"),)
    where = edits.stmt_span(run.plan, second)
    fixes: list[Fix] = []
    what = f"{call(second)} {_VERBS[now.kind]} elements of `{tensor}`"
    if data.get("unseen"):
        message = f"{what} through the async proxy, but the ordinary `lm.{first.name}` that wrote them is not fenced for it"
        help = "fence the ordinary writes with `lm.fence_proxy()` behind them, or read with `lm.load`"
        fixes.append(edits.after(edits.stmt_span(run.plan, first), "lm.fence_proxy()"))
    elif _unfinished(run, old):
        drain = "lm.store_wait(pending=0, read=False)"
        message = f"{what} while {call(first)} of {_who(run, old.member, old.scope)} may still be writing them: nothing has waited for the store's end"
        help = f"wait where the store was issued, `{drain}`, then let the two meet"
        if old.member is now.member:
            fixes.append(edits.before(where, drain))
    elif old.member is now.member:
        sync = edits.own_barrier(program, now.member.role)
        message = f"{what} that other lanes of {_who(run, now.member, now.scope)} {_plural(old.kind)} with {call(first)}, and nothing makes them meet in between"
        help = "let the lanes meet: `lm.sync` on a named barrier of the role"
        if sync:
            fixes.append(edits.before(where, f"lm.sync({sync})"))
    elif old.member.cta is now.member.cta:
        message = f"{what} that {_who(run, old.member, old.scope)} {_VERBS[old.kind]} with {call(first)}, and nothing orders the two"
        help = "let the two roles meet in between, or hand over through a barrier"
        roles = {old.member.role, now.member.role}
        shared = [b.name for b in program.named.values() if roles <= set(b.roles) and not b.per_member]
        if shared:
            fixes.append(edits.before(where, f"lm.sync({shared[0]})"))
    else:
        message = f"{what} that {_who(run, old.member, old.scope)} {_VERBS[old.kind]} with {call(first)}, and nothing orders the two blocks"
        help = "let a second launch do what comes after, or order the blocks: `lm.signal` behind the one, `lm.spin` in front of the other"
        if old.member.world is now.member.world:
            help = "let the cluster meet in between: `lm.cluster_sync()`"
        elif {old.kind, now.kind} == {WRITE}:
            help = "give each block elements of its own, or combine them with `lm.atomic` or `tma_reduce`"
        elif old.kind == UPDATE or now.kind == UPDATE:
            help = "an update orders nothing: let a second launch do what comes after, or raise a flag with `lm.signal` behind it"
    return Fault("S039", message, second.span, related, help=help, fixes=tuple(fixes), facts=facts, trace=lines)


def _plural(kind: str) -> str:
    return {READ: "read", WRITE: "wrote", UPDATE: "updated", FLAG: "signalled"}[kind]


def _unfinished(run: GridRun, old: Access) -> bool:
    """Whether the access is a bulk store whose own issuer does not know that it has ended."""
    bulk = any(isinstance(e, Issue) and e.engine == "bulk" for e in effects_of(_op(run, old), run.plan.program))
    return bulk and not old.bit & (old.member.K | old.member.E)


def _replaced(run: GridRun, data: dict[str, Any]) -> Fault:
    """A tile's result that another tile writes over before anything has read it."""
    tensor, old, now = str(data["tensor"]), data["old"], data["now"]
    first, second = _op(run, old), _op(run, now)
    lines = (_line(run, old.member, first, old.scope, f"writes {tensor}{_elements(old.box)}"), _line(run, now.member, second, now.scope, "writes it again"))
    message = f"{call(second)} of {_who(run, now.member, now.scope)} writes over what {_who(run, old.member, old.scope)} has written to `{tensor}`, and nothing has read that"
    return Fault("S028", message, second.span, ((first.span, "what is lost was written here"),) if first is not second else (), trace=lines,
                 help="add what is there to what is stored, or write a place of its own", facts={"tensor": tensor, "role": now.member.role, "setting": _setting(run)})  # fmt: skip


def _too_soon(run: GridRun, data: dict[str, Any]) -> Fault:
    """The first link of a chain reads what only its own block, or a later one, writes."""
    if data["now"] is None:
        return _nobody(run, data)
    tensor, read, write, behind = str(data["tensor"]), data["old"], data["now"], data["behind"]
    first, second = _op(run, read), _op(run, write)
    common = _elements(_shared(read.box, write.box))
    message = f"{call(first)} of {_who(run, read.member, read.scope)} reads elements of `{tensor}` that no block has written yet, where other tiles read what a block has left"
    lines = (
        _line(run, read.member, first, read.scope, f"reads {tensor}{common}, as it was before the launch"),
        _line(run, write.member, second, write.scope, "writes it"),
        _line(run, behind.member, first, behind.scope, "reads what has been written"),
    )
    param = run.plan.program.tensors[tensor]
    related = ((second.span, "written here, later"), (param.span, "not declared to hold anything at the start"))
    guard = next((s for s, _ in run.plan.sites[read.op].around[::-1] if isinstance(s, If)), None)
    fixes: list[Fix] = []
    field = _first_field(run, read, behind)
    at = edits.stmt_span(run.plan, first)
    if field and guard is not None and guard.cond.span.line:
        fixes.append(edits.replace(guard.cond.span, f"{field} > 0"))
    elif field and at.line == at.end_line:
        fixes.append(Fix((Edit(at.start(), f"if {field} > 0:\n{' ' * (at.column + 3)}"),), "likely", f"put it under `if {field} > 0:`"))
    help = f"let the first tile of the chain read nothing{f': `if {field} > 0:`' if field else ''}; where `{tensor}` holds data at the start, say so: `{tensor}: LM.{param.kind}{param.rank}d[..].inout`"
    return Fault("S042", message, first.span, related if guard is None else ((guard.head, "under this condition"), *related), help=help, fixes=tuple(fixes), trace=lines,
                 facts={"tensor": tensor, "role": read.member.role, "elements": common, "setting": _setting(run)})  # fmt: skip


def _nobody(run: GridRun, data: dict[str, Any]) -> Fault:
    """Elements that no block writes, read beside those that one does."""
    tensor, read, left = str(data["tensor"]), data["old"], data["left"]
    first, second, param = _op(run, read), _op(run, left), run.plan.program.tensors[str(data["tensor"])]
    message = f"{call(first)} of {_who(run, read.member, read.scope)} reads elements of `{tensor}` that no block writes, behind those that a block has left"
    lines = (_line(run, left.member, second, left.scope, f"writes {tensor}{_elements(left.box)}"), _line(run, read.member, first, read.scope, f"reads {tensor}{_elements(read.box)}, as it was before the launch"))
    help = f"let as much be written as is read; where `{tensor}` holds data at the start, say so: `{tensor}: LM.{param.kind}{param.rank}d[..].inout`"
    return Fault("S042", message, first.span, ((second.span, "written here"), (param.span, "not declared to hold anything at the start")), help=help, trace=lines,
                 facts={"tensor": tensor, "role": read.member.role, "elements": _elements(read.box), "setting": _setting(run)})  # fmt: skip


def _first_field(run: GridRun, read: Access, behind: Access) -> str:
    """The one field of the tile that is 0 where the read comes too soon and more where it does not."""
    for loop in run.plan.sites[read.op].loops:
        if loop.kind != "tiles" or not isinstance(read.scope.get(loop.var), tuple):
            continue
        names = run.plan.program.schedulers[str(loop.scheduler)].fields
        pairs = zip(names, read.scope[loop.var], behind.scope[loop.var], strict=False)
        moved = [n for n, a, b in pairs if a == 0 and b > 0]
        both = [n for n, a, b in zip(names, read.scope[loop.var], behind.scope[loop.var], strict=False) if a != b]
        if len(moved) == 1 and both == moved:
            return f"{written(loop.var)}.{moved[0]}"
    return ""


def _signals(run: GridRun, data: dict[str, Any]) -> Fault:
    """One word, raised by two that do not know of each other."""
    tensor, old, now = str(data["tensor"]), data["old"], data["now"]
    first, second = _op(run, old), _op(run, now)
    i = now.box[0][0]
    message = f"{_who(run, now.member, now.scope)} and {_who(run, old.member, old.scope)} both signal `{tensor}[{i}]`, and neither knows of the other: who waits for it cannot tell which has come"
    related = ((first.span, f"{_who(run, old.member, old.scope)} signals it here"),) if first is not second else ()
    lines = (_line(run, old.member, first, old.scope, f"{tensor}[{i}]"), _line(run, now.member, second, now.scope, f"{tensor}[{i}]"))
    return Fault("S040", message, second.spans.get("i", second.span), related, help="give each a word of its own, and wait for all of them", trace=lines,
                 facts={"tensor": tensor, "word": i, "role": now.member.role, "setting": _setting(run)})  # fmt: skip


def _never(run: GridRun) -> Fault:
    """A grid that stops at a flag."""
    program = run.plan.program
    w = min(run.waits, key=lambda w: (w.scope["#cta"], w.member.number))
    op = program.ops[w.op]
    raised = [s.op for s in run.plan.sites.values() if s.op.attrs.get("flags") == w.tensor and any(isinstance(e, Flag) and e.kind == "signal" for e in effects_of(s.op, program))]
    counted = [s.op for s in run.plan.sites.values() if s.op.name == "atomic" and s.op.attrs.get("tensor") == w.tensor]
    if counted:
        reason = f"the updates leave it at {w.found}" if w.raised else "no block that can still run updates that word"
        raised += counted
    elif not raised:
        reason = f"nothing signals `{w.tensor}`"
    else:
        reason = f"it stays at {w.found}" if w.raised else "no block that can still run signals that word"
    message = f"{_who(run, w.member, w.scope)} waits for `{w.tensor}[{w.i}]` to be at least {w.value}, and {reason}"
    lines = tuple(_line(run, x.member, program.ops[x.op], x.scope, f"waits for {x.tensor}[{x.i}] >= {x.value}, found {x.found}") for x in run.waits[:8])
    help = f"signal the word that is waited for, with a value of {w.value} or more"
    if counted and w.raised:
        help = "wait for what the blocks before this one have counted: in a small grid one block has several tiles, and those behind this one have not run"
    elif raised and not w.raised:
        help = "signal the word that is waited for, and let a block wait only for tiles that come before its own in the tile order"
    return Fault("S041", message, op.span, tuple((o.span, "raised here") for o in raised[:3]), help=help, trace=lines,
                 facts={"tensor": w.tensor, "word": w.i, "expected": w.value, "found": w.found, "role": w.member.role, "setting": _setting(run)})  # fmt: skip


def _unclear(run: GridRun, spin: int, update: int) -> Fault:
    """A wait for a word that is changed by what only the data say, or in ways whose order matters."""
    program = run.plan.program
    wait, change = program.ops[spin], program.ops[update]
    tensor = str(wait.attrs["flags"])
    message = f"not decided: whether this wait ends, since {call(change)} changes words of `{tensor}` by an amount, or in an order, that the text does not say"
    return Fault("S090", message, wait.span, ((change.span, "changed here"),), severity="note", facts={"tensor": tensor, "setting": _setting(run)},
                 help="count with `lm.atomic(.., op=\"add\")` of a number that is not read from memory, or let one block at a time `lm.signal`")  # fmt: skip


def _open(run: GridRun, tensor: str, old: Access, now: Access) -> Fault:
    first, second = _op(run, old), _op(run, now)
    message = f"not decided: whether {call(second)} and {call(first)} touch the same elements of `{tensor}`, nothing orders the two"
    return Fault("S090", message, second.span, ((first.span, f"{_who(run, old.member, old.scope)} {_VERBS[old.kind]} `{tensor}` here"),), severity="note",
                 help="order them, or let coordinates and masks be numbers of the tile", facts={"tensor": tensor, "setting": _setting(run)})  # fmt: skip


__all__ = ["grid_faults"]

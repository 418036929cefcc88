"""The safety gate: static rules, then one canonical run on phase numbers for every trip setting.

`check` is the entry point. A fault is the first of its setting, told with this program's names, a trace and edits; settings that lead to
the same fault are merged, smallest first. What cannot be decided is said, and is never a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import FenceProxy, Sync
from cake_ir.program import For, Program
from cake_ir.record import record
from cake_ir.span import Span
from cake_verify.analyses import ranges
from cake_verify.analyses.arms import Arms
from cake_verify.analyses.count_text import NotKnown
from cake_verify.analyses.exit import check_exit
from cake_verify.analyses.grid_walk import walks
from cake_verify.analyses.guards import unreached
from cake_verify.analyses.left_out import left_out, part_left_out
from cake_verify.analyses.machine import LIMIT, Machine, Stuck
from cake_verify.analyses.no_rounds import without_rounds
from cake_verify.analyses.overwritten import Overwritten
from cake_verify.analyses.partners import partners
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.replay import replay, start
from cake_verify.analyses.report import report
from cake_verify.analyses.report_grid import grid_faults
from cake_verify.analyses.report_lost import lost_products
from cake_verify.analyses.report_unread import unread_fault
from cake_verify.analyses.report_value import clash_fault, outside_tensor
from cake_verify.analyses.rows import guarded, what_is_left
from cake_verify.analyses.settings import TRIALS, Setting, Settings
from cake_verify.analyses.state import Found, Undecided
from cake_verify.analyses.trips import Loop, canonical, spoken
from cake_verify.analyses.uneven_shares import uneven
from cake_verify.analyses.unread_choice import lost_fault, lost_side
from cake_verify.analyses.unread_parts import Parts, candidates, end_of_run
from cake_verify.analyses.unread_runs import Doubts
from cake_verify.analyses.value_walk import Event, ValueWalk
from cake_verify.analyses.wraps import came_round, never_round, said
from cake_verify.rule import checks


@record()
class SafetyResult:
    """What the gate found: `faults`, `undecided` questions (severity note), `notes`, the events walked and the settings used."""

    faults: tuple[Fault, ...]
    undecided: tuple[Fault, ...]
    events: int
    settings: tuple[Setting, ...]
    notes: tuple[Fault, ...] = ()


WORK = 120_000
"""Events that are walked for one program, over all settings; what is left then is not decided."""


def check(program: Program, work: int = WORK) -> SafetyResult:
    """Decide a program. The program has to have passed the gates before this one; `work` bounds the events walked."""
    static = [fault for _, rule in checks("safety") for fault in rule(program)]
    errors = [f for f in static if f.severity == "error"]
    if any(not f.facts.get("starved") for f in errors):
        return SafetyResult(tuple(static), (), 0, ())
    return _starved(program, work, static) if errors else _walked(program, work, static)


def _starved(program: Program, work: int, static: list[Fault]) -> SafetyResult:
    """Barriers that can never complete: where no run comes back to them, they are only said."""
    walked = _walked(program, work, [])
    if walked.undecided or any(f.code in _STUCK for f in walked.faults):
        return SafetyResult(tuple(static), (), walked.events, walked.settings)
    said = [replace(f, severity="warning") if f.facts.get("starved") else f for f in static]
    return SafetyResult((*walked.faults, *said), (), walked.events, walked.settings, walked.notes)


def _walked(program: Program, work: int, static: list[Fault]) -> SafetyResult:
    """Every setting walked, and what the values of one of them mean."""
    plan = Plan(program)
    machine = Machine(plan)
    try:
        search = Settings(program)
    except NotKnown as counts:
        d = program.schedulers[str(counts)]
        why = f"not decided: how many tiles `{d.name}` has is computed in more steps than are followed"
        return SafetyResult(tuple(static), (Fault("S090", why, d.span, severity="note", help="state it in fewer steps, or as an argument"),), 0, ())
    settings, lost = search.find()
    failures: list[tuple[Setting, Fault]] = []
    undecided: list[Fault] = []
    events = 0
    used: set[int] = set()
    wrote: set[int] = set()
    short: dict[int, tuple[str, int, int, int]] = {}
    exact: set[int] = set()
    clear: set[int] = set()
    doubted: set[int] = set()
    came: set[str] = set()
    told: tuple[Setting, ValueWalk, list[Event]] | None = None
    doubts = Doubts(plan)
    arms, turns = Arms(machine), Overwritten(machine)
    for turn, setting in _in_turn(settings, arms, search):
        if events >= work:
            undecided.append(Fault("S090", f"not decided: {work} operations were walked, {len(settings)} settings need more", program.span, severity="note"))
            break
        world = start(machine, setting, search.prefix)
        failed = False
        log: list[Event] = []
        heard = doubts.heard
        values = ValueWalk(plan, setting.args) if setting.telling else None
        try:
            if values is not None:
                heard = heard.union(values.handlers)
            if not heard:
                machine.run(world, None, min(LIMIT, work - events))
            else:  # what gives or takes values is kept; its meaning is looked at when all regions are known
                machine.run(world, log.append, min(LIMIT, work - events), heard)
            check_exit(plan, world)
        except (Found, Stuck):
            failed = True
        except Undecided as u:
            undecided.append(Fault("S090", f"not decided: {u.why}", _place(program, u), severity="note", facts={"setting": str(setting)}))
            break
        world.members.clear()  # they point back at their world: without a cycle everything goes as soon as nobody needs it
        events += world.events
        came |= came_round(plan, world.ctas, came)
        if failed:
            fault = report(replay(machine, setting, search.prefix))
            if fault is not None and not any(_same(fault, f) for _, f in failures):
                failures.append((setting, fault))
            continue
        if values is not None:
            told = setting, values, log
        for cta in world.ctas:
            used |= {op for op, r in zip(cta.O, cta.R, strict=True) if r}
        own, left = end_of_run(world)
        clear |= own - left
        doubted |= left
        doubts.note(turn, log, heard, doubted - clear)
        used |= world.used
        wrote |= world.wrote
        short |= world.short
        exact |= world.exact
    faults = without_rounds(program, search.loops, failures, settings)
    if not faults and not undecided:
        faults += [_dead(plan, op) for op in sorted(wrote - used)] or turns.faults()
        faults += [_cut_short(plan, op, *short[op]) for op in sorted(short) if op not in exact][:1]
        if told is not None:
            faults += _values(plan, *told)
        if not faults and (parts := candidates(plan, doubted - clear)):
            faults += _unread(plan, doubts.parts(machine, settings, search.prefix, parts))
    if not faults:
        def covered(loop: For) -> tuple[int, ...]:
            at = [i for i, x in enumerate(search.loops) if x.stmt is loop]
            return tuple(sorted({s.trips[i] for s in settings for i in at}))

        open_ones = {canonical(loop.hi): loop for loop in reversed(lost) if not _bounded(program, loop)}  # roles that count alike: once
        undecided += [_lost(loop, said(covered(loop.stmt))) for loop in reversed(open_ones.values())]
        undecided += partners(program) + unreached(program, settings)
        undecided += never_round(program, came, covered) if settings and not undecided else []
        if search.untried:
            why = f"not decided: {len(search.untried)} conditions on arguments are left after {TRIALS:,} choices of arguments, this is the first"
            undecided.append(Fault("S090", why, search.untried[0].head, severity="note"))
        undecided += [Fault("S090", "not decided: no values read that were tried make this condition true", b.cond.span, severity="note",
                            help="state what the tensor holds with `lm.assume_values(..)`") for b in search.one_sided]  # fmt: skip
        if settings and not undecided:
            undecided += arms.never()
        if not settings:
            undecided.append(Fault("S090", "not decided: no arguments satisfy every `lm.assume` among those tried", program.span, severity="note"))
    if not undecided and not any(f.severity == "error" for f in faults):
        shared, undecided = grid_faults(walks(machine, settings, search.prefix, work - events, more=partial(uneven, search)))
        faults = shared or faults
    return SafetyResult((*static, *_roots(faults)), tuple(undecided), events, tuple(settings))


def _in_turn(settings: list[Setting], arms: Arms, search: Settings) -> Iterator[tuple[int, Setting]]:
    """The settings, and then those for arms that none of them came to, which join them."""
    yield from enumerate(settings)
    for setting in arms.far(search):
        settings.append(setting)
        yield len(settings) - 1, setting


def _place(program: Program, u: Undecided) -> Span:
    """What could not be decided: an operation, a role's block where no operation is at fault, or the schedule."""
    if u.op is not None:
        return program.ops[u.op].span
    return next((block.head for block in program.body if block.role == u.role), program.span)


def check_bound(program: Program, alias: Mapping[str, str], work: int = WORK) -> SafetyResult:
    """Decide what changes where several parameters are bound to one tensor; `alias` gives them one name. The program has to be safe otherwise."""
    search = Settings(program)
    settings, _ = search.find()
    faults, undecided = grid_faults(walks(Machine(Plan(program)), settings, search.prefix, work, alias, partial(uneven, search)))
    return SafetyResult(tuple(faults), tuple(undecided), 0, tuple(settings))


def _values(plan: Plan, setting: Setting, walk: ValueWalk, log: list[Event]) -> list[Fault]:
    """What the values of one run mean, where they do not fit."""
    walk.run(log)
    clash = clash_fault(plan, walk, setting)
    if clash is not None and clash.severity == "error":
        return [clash]
    doubts = [clash] if clash is not None else []
    return doubts + (outside_tensor(plan, walk, setting) or lost_products(plan, walk, setting) or left_out(plan, walk, setting) or part_left_out(plan, walk, setting))


def _unread(plan: Plan, parts: Parts) -> list[Fault]:
    """What no run reads of the writes that `parts` has looked at."""
    found = parts.unread()
    if found is not None:
        return [unread_fault(plan, found)]
    sides = (lost_side(plan, plan.program.ops[n], parts.views[n], parts.written[n]) for n in sorted(parts.numbers))
    return [lost_fault(plan, side) for side in sides if side is not None][:1]


_STUCK = frozenset({"S001", "S008", "S009", "S015", "S018", "S019", "S020", "S021", "S022", "S023"})
"""Codes whose place is often far from what is wrong: symptoms, where anything better is known."""


def _roots(faults: list[Fault]) -> list[Fault]:
    """Faults without those that are likely consequences: of several symptoms the first, and none beside a located cause."""
    located = [f for f in faults if f.code not in _STUCK]
    return located or faults[:1]


def _same(a: Fault, b: Fault) -> bool:
    return a.code == b.code and a.span == b.span


def _dead(plan: Plan, number: int) -> Fault:
    op = plan.program.ops[number]
    view = next((e.type.view for e in op.operands.values() if hasattr(e, "type") and hasattr(e.type, "view")), "shared memory")  # type: ignore[union-attr]  # a type with a view, by the tests before
    role = plan.sites[number].role
    after = [s.op for s in plan.sites.values() if s.role == role and s.op.id > number and any(isinstance(e, (FenceProxy, Sync)) for e in effects_of(s.op, plan.program))]
    related = tuple((o.span, "nothing reads it after this") for o in after[:2])
    return Fault("S028", f"what is written to `{view}` here is never read: every value is overwritten or left behind at the end", op.span, related,
                 help="read it, store it, or leave the write out", facts={"view": view})  # fmt: skip


def _cut_short(plan: Plan, number: int, role: str, first: int, rows: int, end: int) -> Fault:
    op = plan.program.ops[number]
    message = f"the store writes {rows} rows from row {first} on, and the sequence that they belong to goes on to row {end}: the rest of this tile is never written"
    range_ = guarded(plan, op)
    fix = what_is_left(plan, op, range_) if range_ is not None else None
    return Fault("S013", message, op.spans.get("rows", op.span), ((op.span, "stored here"),), "`rows=` is what is left of the sequence, at most a tile", (fix,) if fix is not None else (),
                 facts={"role": role, "expected": end - first, "found": rows})  # fmt: skip


def _bounded(program: Program, loop: Loop) -> bool:
    """Whether the loop cannot have a second iteration, so that none of the runs had to show one."""
    high, low = ranges.of(program, loop.role, loop.stmt.hi), ranges.of(program, loop.role, loop.stmt.lo)  # type: ignore[arg-type]  # counted loops have bounds
    return high.hi - low.lo <= 1


def _lost(loop: Loop, covered: str) -> Fault:
    text = spoken(loop.hi)
    return Fault("S090", f"not decided: no arguments tried give this loop more than one iteration (its bound is {text})", loop.stmt.head,
                 severity="note", facts={"expression": text}, help=f"{covered}state what is known about the arguments with `lm.assume(..)`")  # fmt: skip


__all__ = ["SafetyResult", "check", "check_bound"]

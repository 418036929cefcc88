"""The gates in order, and when to stop.

Construct, conformance, consistency and schedule are static and report everything they find. Safety needs a program whose pieces fit: it
is skipped while one of the first three has an error, or while the schedule breaks a rule of which its findings would be consequences.
Notes come last and never change the verdict.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import PurePath
from typing import Any

from cake_ir.fault import Fault, did_you_mean
from cake_ir.frontend import Module, Template, parse, specialise
from cake_ir.frontend.plans import specialise_plan
from cake_ir.frontend.specialise import retargeted
from cake_ir.plan import Run as RunStep
from cake_ir.program import Program
from cake_ir.span import NOWHERE, Span
from cake_verify.diagnostic import INTERNAL, Diagnostic
from cake_verify.pause import collector_paused
from cake_verify.rule import checks, of_values, room, targeted_checks
from cake_verify.verdict import Outcome, Verdict, ordered

ORDER = ("internal", "construct", "conformance", "consistency", "safety", "schedule", "distilled", "notes")
STATIC = ("construct", "conformance", "consistency")
DEADLINE_S = 10.0
"""No gate is entered later than this after the start; what is left out makes the verdict undecided."""


@dataclass(slots=True)
class Run:
    """One verification in progress."""

    started: float = field(default_factory=time.perf_counter)
    found: list[Diagnostic] = field(default_factory=list)
    undecided: bool = False
    strict: bool = False
    extents: Mapping[str, int] = field(default_factory=dict)
    programs: dict[str, Program] = field(default_factory=dict)
    work: int = 0

    def add(self, faults: Iterable[Fault], schedule: str | None, target: str | None) -> bool:
        """Keep faults; whether one of them is an error."""
        bad = False
        for fault in faults:
            self.found.append(Diagnostic.from_fault(fault, schedule, target))
            bad |= fault.severity == "error"
        return bad

    def internal(self, what: str, error: BaseException, span: Span, schedule: str | None, target: str | None) -> None:
        """Record a failure of Cake itself: it is said once, with where it happened, and nothing is proved."""
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        message = f"Cake itself failed in {what}: {type(error).__name__} at {where}"
        fault = Fault(INTERNAL, message, span, severity="warning", help="this is a fault of Cake, not of the schedule; nothing was decided",
                      facts={"exception": type(error).__name__, "detail": str(error)[:200], "where": where})  # fmt: skip
        self.found.append(Diagnostic.from_fault(fault, schedule, target))
        self.undecided = True

    def late(self) -> bool:
        return time.perf_counter() - self.started > DEADLINE_S


def gate(run: Run, name: str, program: Program, *, again: bool = False) -> set[str]:
    """Run every check of one folder of rules over `program`; the codes of the rules that found an error.

    `again`: the schedule has been checked for another target, so that only rules that look at the target can find more.
    """
    broken: set[str] = set()
    for rule, check in targeted_checks(name) if again else checks(name):
        try:
            found = iter(check(program))
            first = next(found, None)
            if first is None:  # as mostly
                continue
            before = len(run.found)
            faults: Iterable[Fault] = chain((first,), found)
            if again:  # what another target refuses at the same place is said
                said = {(d.code, d.span) for d in run.found if d.schedule == program.name}
                faults = (f for f in list(faults) if (f.code, f.span) not in said)
            if run.add(faults, program.name, program.target):
                broken.add(rule.page.code)
            run.undecided |= rule.undecides and len(run.found) > before
        except Exception as error:  # a rule's own fault must not take the others with it
            run.internal(f"rule {rule.page.code}", error, program.span, program.name, program.target)
    return broken


def verify_program(run: Run, program: Program, others: tuple[Program, ...] = ()) -> None:
    """All gates past construction. `others` are the same schedule specialised for its further targets: legality is checked on each."""
    broken: set[str] = set()
    for each in (program, *others):
        for name in STATIC:
            broken |= gate(run, name, each, again=each is not program)
    if run.extents:
        from cake_verify.rules.schedule.q022_assumption import check_extents  # only where a request names extents

        run.add(check_extents(program, run.extents), program.name, program.target)
    roots = {rule.page.code for rule, _ in checks("schedule") if rule.root}
    before = len(run.found)
    told = {d.span for d in run.found if d.severity == "error" and d.schedule == program.name}
    disordered = gate(run, "schedule", program)
    if broken:  # what is said of the very words of an error has its cause
        run.found[before:] = [d for d in run.found[before:] if d.severity != "error" or d.span not in told]
    if not broken and not roots & disordered:
        after = len(run.found)
        unsafe = _safety(run, program)
        stand_ins = {rule.page.code for rule, _ in checks("schedule") if rule.stands_in or (rule.yields and unsafe)}
        run.found[before:after] = [d for d in run.found[before:after] if d.code not in stand_ins]
    gate(run, "notes", program)


def _safety(run: Run, program: Program) -> bool:
    """The walk and its machine; faults that carry the severity `note` say what could not be decided."""
    if run.late():
        run.undecided = True
        return False
    try:
        from cake_verify.analyses import safety  # imported late: texts that fail earlier do not need it

        result = safety.check(program, run.work or safety.WORK)
    except Exception as error:  # as in `gate`
        run.internal("the safety gate", error, program.span, program.name, program.target)
        return False
    errors = tuple(f for f in result.faults if f.severity == "error")
    if not of_values().issuperset([f.code for f in errors]):
        from cake_verify.rules.schedule import q002_trip_counts  # its answer is only wanted where something is wrong

        try:
            cause = q002_trip_counts.cause(program, errors)
        except Exception as error:  # as in `gate`; what the safety gate found stands
            run.internal("rule Q002", error, program.span, program.name, program.target)
            cause = None
        if cause is not None:
            run.add((cause, *(f for f in result.faults if f.severity != "error"), *result.notes), program.name, program.target)
            return True
    if not errors and not result.undecided and program.rings:
        from cake_verify.rules.schedule import q002_trip_counts  # as above

        try:
            disagreement = q002_trip_counts.certain(program)
        except Exception as error:  # as in `gate`
            run.internal("rule Q002", error, program.span, program.name, program.target)
            disagreement = None
        if disagreement is not None:
            run.add((disagreement,), program.name, program.target)
            return True
    bad = run.add((*_one_a_line(result.faults), *result.notes), program.name, program.target)
    run.add(result.undecided, program.name, program.target)
    run.undecided |= bool(result.undecided)
    return bad


def _one_a_line(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Faults without the errors that an earlier one stands in front of on the same line: they have one cause."""
    told: set[int] = set()
    for f in faults:
        if f.severity != "error" or f.span.line not in told:
            yield f
        if f.severity == "error":
            told.add(f.span.line)


# ------------------------------------------------------------------ texts


def verify_text(
    text: str,
    *,
    params: Mapping[str, Any] | None = None,
    target: str | None = None,
    default_target: str | None = None,
    schedule: str | None = None,
    extents: Mapping[str, int] | None = None,
    outputs: Mapping[str, str] | None = None,
    filename: str = "<text>",
    strict: bool = False,
    repair: bool = False,
    repair_seconds: float = 2.0,
    work: int = 0,
    module: Module | None = None,
    suggest: bool = True,
    accept: Callable[[str], bool] | None = None,
) -> Verdict:
    """The verdict on every schedule of a text (or the one called `schedule`). Never raises for what the text holds.

    `target` is what to verify for, whatever the schedule names; `default_target` is for schedules that name none. `params` are values
    of tunables, given to the schedules that declare them; `extents` values of run-time scalars by name; `outputs` tensors that have to be written,
    with what each is in words.

    `repair` looks for small edits under which the text verifies (and `accept` holds of it), for at most `repair_seconds` of processor time,
    and puts them in front of the first error's fixes and into `repairs`: verified again, not checked for what they compute. `work` bounds the operations that the safety gate
    walks (0: its own bound); `module` is the text already parsed; without `suggest` no edit is looked for beyond those of the rules.
    """
    run = Run(strict=strict, extents=dict(extents or {}), work=work)
    with collector_paused():
        verdict = _verify_text(run, text, params, target, default_target, schedule, extents, outputs, filename, strict, repair, repair_seconds, work, module, suggest, accept)
        while run.programs:  # each goes at once, and not into the collector's hands when it wakes: some facts name their program
            run.programs.popitem()[1].facts.clear()
        return verdict


def _verify_text(
    run: Run, text: str, params: Mapping[str, Any] | None, target: str | None, default_target: str | None, schedule: str | None, extents: Mapping[str, int] | None,
    outputs: Mapping[str, str] | None, filename: str, strict: bool, repair: bool, repair_seconds: float, work: int, module: Module | None, suggest: bool,
    accept: Callable[[str], bool] | None,
) -> Verdict:  # fmt: skip
    try:
        module = module or parse(text, filename)
    except Exception as error:  # the process boundary of the verifier: a text must never end it
        run.internal("reading the text", error, NOWHERE, None, target)
        return _finish(run, filename, text.split("\n")[:1], (), (), None)
    lines = module.source.lines
    run.add(module.faults, None, target or default_target)
    templates = _chosen(run, module, schedule, dict(params or {}))
    names, targets = [], []
    for template in templates:
        wanted = _targets(template, target, default_target)
        names.append(template.name)
        targets += [t for t in wanted if t not in targets]
        _verify_template(run, template, wanted, dict(params or {}))
    if module.plan is not None and schedule is None:
        _verify_plan(run, module, target, default_target, dict(params or {}))
    if outputs:
        _outputs(run, module, outputs)
    verdict = _finish(run, filename, lines, tuple(names), tuple(t for t in targets if t), schedule)
    if verdict.verdict == "fail" and (suggest or repair):
        from cake_verify import repair as repairs  # imports this module's result types; only wanted here

        def again(new: str, suggest: bool = False) -> Verdict:
            return verify_text(new, params=params, target=target, default_target=default_target, schedule=schedule, extents=extents, outputs=outputs, filename=filename,
                               strict=strict, work=min(work or repairs.WORK, repairs.WORK), suggest=suggest)  # fmt: skip

        try:
            verdict = repairs.with_suggestion(text, verdict, run.programs)
            if suggest:
                verdict = repairs.with_meetings(text, verdict, run.programs, again)
            if repair:
                verdict = repairs.of_verdict(text, verdict, run.programs, again, accept, repair_seconds)
        except Exception as error:  # as above: the verdict stands without an edit
            run.internal("looking for edits", error, verdict.errors[0].span, names[0] if names else None, target)
            return _finish(run, filename, lines, tuple(names), tuple(t for t in targets if t), schedule)
    return verdict


def _chosen(run: Run, module: Module, schedule: str | None, params: dict[str, Any]) -> tuple[Template, ...]:
    """The schedules to verify, after reporting a schedule or parameters that nobody declares."""
    templates = module.schedules
    if schedule is not None:
        one = module.schedule(schedule)
        if one is None:
            names = [s.name for s in templates]
            run.add([Fault("N066", "there is no schedule of that name", NOWHERE, help=did_you_mean(schedule, names, "schedule"))], None, None)
            return ()
        templates = (one,)
    known = {name for t in (*module.schedules, *([module.plan] if module.plan else [])) for name in t.tunables}
    stray = [name for name in params if name not in known]
    if stray and templates:
        run.add(specialise(templates[0], {name: params[name] for name in stray[:3]}).faults, templates[0].name, None)
    return templates


def _targets(template: Template, target: str | None, default: str | None) -> tuple[str, ...]:
    if target:
        return (target,)
    return template.targets or ((default,) if default else ("",))


def _verify_template(run: Run, template: Template, targets: tuple[str, ...], params: dict[str, Any]) -> None:
    own = {name: value for name, value in params.items() if name in template.tunables}
    try:
        made = specialise(template, own, targets[0] or None)
    except Exception as error:  # as above: elaboration must not take the process down
        run.internal("elaboration", error, template.span, template.name, targets[0])
        return
    if run.add(made.faults, template.name, targets[0]) or made.program is None:
        return
    run.programs[template.name] = made.program
    verify_program(run, made.program, tuple(retargeted(made.program, target) for target in targets[1:]))


def _outputs(run: Run, module: Module, outputs: Mapping[str, str]) -> None:
    """What a request asks for and the only schedule does not write; where something else is wrong that says better what is missing."""
    if module.plan is not None or len(run.programs) != 1 or any(d.severity == "error" for d in run.found):
        return
    from cake_verify.rules.schedule import q013_unwritten  # only where a request names outputs

    program = next(iter(run.programs.values()))
    run.add(q013_unwritten.check_outputs(program, outputs), program.name, program.target)


def _verify_plan(run: Run, module: Module, target: str | None, default: str | None, params: dict[str, Any]) -> None:
    """The plan itself, and the launches whose tunables differ from what the schedules were verified with."""
    plan_template = module.plan
    assert plan_template is not None
    try:
        made = specialise_plan(module, {k: v for k, v in params.items() if k in plan_template.tunables})
    except Exception as error:  # as in `_verify_template`
        run.internal("elaboration of the plan", error, plan_template.span, plan_template.name, target)
        return
    if run.add(made.faults, plan_template.name, target) or made.plan is None:
        return
    programs: list[Program] = []
    for step in (s for s in made.plan.steps if isinstance(s, RunStep)):
        template = module.schedule(step.schedule)
        if template is None:
            return
        plain = {k: v for k, v in params.items() if k in template.tunables}
        launched = specialise(template, {**plain, **step.tunables}, _targets(template, target, default)[0] or None)
        if launched.program is None:
            run.add(launched.faults, template.name, target)
            return
        if launched.program.tunables != {**template.tunables, **plain}:
            verify_program(run, launched.program)
        programs.append(launched.program)
    _bound_twice(run, [s for s in made.plan.steps if isinstance(s, RunStep)], programs)
    for name in ("consistency", "schedule"):
        for rule in room(name):
            if rule.check_plan is None:
                continue
            try:
                run.add(rule.check_plan(made.plan, tuple(programs)), made.plan.name, target)
            except Exception as error:  # as in `gate`
                run.internal(f"rule {rule.page.code}", error, made.plan.span, made.plan.name, target)


def _bound_twice(run: Run, steps: list[RunStep], programs: list[Program]) -> None:
    """Launches in which several parameters stand for one tensor: what was taken to lie apart meets."""
    if any(d.severity == "error" for d in run.found):
        return
    for step, program in zip(steps, programs, strict=True):
        first: dict[str, str] = {}
        alias = {p: first[bound] for p, bound in step.tensors.items() if first.setdefault(bound, p) != p}
        if not alias or len({program.tensors[p].rank for pair in alias.items() for p in pair}) > 1:
            continue
        try:
            from cake_verify.analyses import safety  # imported late, as in `_safety`

            result = safety.check_bound(program, alias)
        except Exception as error:  # as in `gate`
            run.internal("the launch's tensors", error, step.span, program.name, program.target)
            return
        names = " and ".join(f"`{p}`" for p in (*dict.fromkeys(alias.values()), *alias))
        for fault in (*result.faults, *result.undecided):
            run.add([replace(fault, related=(*fault.related, (step.span, f"{names} are one tensor in this launch")))], program.name, program.target)
        run.undecided |= bool(result.undecided)


def _finish(
    run: Run, filename: str, lines: list[str], names: tuple[str, ...], targets: tuple[str, ...], schedule: str | None
) -> Verdict:  # fmt: skip
    diagnostics = ordered(run.found, ORDER)
    outcome: Outcome = "fail" if any(d.severity == "error" for d in diagnostics) else "undecided" if run.undecided else "pass"
    elapsed = (time.perf_counter() - run.started) * 1e3
    return Verdict(
        filename, outcome, diagnostics, elapsed, targets[0] if targets else None, names[0] if names else schedule, names, targets, tuple(lines)
    )


def verify(program: Program, *, filename: str = "<program>", strict: bool = False) -> Verdict:
    """The verdict on one program, construction already done."""
    run = Run(strict=strict)
    verify_program(run, program)
    return _finish(run, filename, [], (program.name,), (program.target,) if program.target else (), None)

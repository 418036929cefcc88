"""From text to one routine that a task can bind: verify, specialise, check parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cake_backend.judge.routine import Routine, routine_of_plan
from cake_backend.judge.status import Status
from cake_backend.task import Task

if TYPE_CHECKING:
    from cake_ir.frontend import Module
    from cake_ir.frontend.template import Template

BINDING = "N070"
"""The code of a parameter that the task cannot bind."""


@dataclass(slots=True)
class Source:
    """The outcome: what is to be run, or a status that says why nothing is. `verdict` is the verify contract's object."""

    verdict: dict[str, Any]
    routine: Routine | None = None
    status: Status | None = None
    summary: str = ""
    findings: list[dict[str, Any]] = field(default_factory=list)


def read_source(
    text: str,
    params: Mapping[str, Any],
    *,
    target: str | None,
    task: Task | None,
    prefer: str | None = None,
    schedule: str | None = None,
    allow_undecided: bool = True,
    verified: Mapping[str, Any] | None = None,
) -> Source:
    """Never raises for what the text holds. `verified` is the verdict of this very question, where it has been asked already.

    `target` is what to build for, whatever the schedule names; without it a schedule for several targets is built for
    `prefer` (the device that is here) if it names that one, else for its first.
    """
    from cake_backend.cuda.faults import NotLowered
    from cake_ir.frontend import parse
    from cake_verify import verify_text

    module = parse(text)
    planned = module.plan is not None and schedule is None
    templates = list(module.schedules) if planned else [t for t in (module.schedule(schedule),) if t is not None]
    if not target and templates and all(not t.targets or prefer in t.targets for t in templates):
        target = prefer
    out = Source(dict(verified) if verified is not None else verify_text(text, params=params, target=target, schedule=schedule, module=module).to_json())
    if out.verdict["verdict"] == "fail":
        first = next(d for d in out.verdict["diagnostics"] if d["severity"] == "error")
        out.status = Status.STATIC_REJECT
        out.summary = f"rejected by gate {first['gate']}, line {first['span']['line']}: [{first['code']}] {first['message']}"
        return out
    if len(module.schedules) > 1 and schedule is None and not planned:
        names = ", ".join(f"`{t.name}`" for t in module.schedules)
        out.status = Status.NOT_LOWERED
        out.summary = f"the text has {len(module.schedules)} schedules ({names}) and no plan: name one, or say in a `@cake.plan` what is launched in which order"
        return out
    assert templates, "verified without a fault, so there is a schedule"
    if not target and not all(t.targets for t in templates):
        out.status, out.summary = Status.UNDECIDED, "no target: the schedule names none and none was asked for"
        return out
    if out.verdict["verdict"] == "undecided":
        note = next((d for d in out.verdict["diagnostics"] if d["severity"] == "note"), None)
        out.findings.append({"kind": "undecided", "text": note["message"] if note else "the gates could not decide"})
        if not allow_undecided:
            out.status, out.summary = Status.UNDECIDED, out.findings[-1]["text"]
            return out
    try:
        out.routine = routine = _planned(module, params, target) if planned else _single(templates[0], params, target)
    except NotLowered as error:
        out.status, out.summary = Status.NOT_LOWERED, f"line {error.fault.span.line}: {error.fault.message}"
        return out
    if task is not None and (faults := task.check_parameters(routine.params)):
        out.status = Status.STATIC_REJECT
        out.summary = faults[0].message
        out.verdict["diagnostics"] = [*out.verdict["diagnostics"], *(_diagnostic(f, routine) for f in faults)]
        out.verdict["verdict"] = "fail"
    return out


def _single(template: Template, params: Mapping[str, Any], target: str | None) -> Routine:
    from cake_ir.frontend import specialise

    own = {name: value for name, value in params.items() if name in template.tunables}
    program = specialise(template, own, target).program
    assert program is not None, "verified without a fault, so it specialises"
    return Routine.of(program)


def _planned(module: Module, params: Mapping[str, Any], target: str | None) -> Routine:
    """The plan's launches, each with the tunables that the plan passes, then those asked for."""
    from cake_ir.frontend import specialise
    from cake_ir.frontend.plans import specialise_plan
    from cake_ir.plan import Run

    assert module.plan is not None
    plan = specialise_plan(module, {k: v for k, v in params.items() if k in module.plan.tunables}).plan
    assert plan is not None, "verified without a fault, so it specialises"
    programs = []
    for step in plan.steps:
        if isinstance(step, Run):
            template = module.schedule(step.schedule)
            assert template is not None, "a plan that parses launches schedules of its file"
            plain = {k: v for k, v in params.items() if k in template.tunables}
            program = specialise(template, {**plain, **step.tunables}, target).program
            assert program is not None, "verified without a fault, so it specialises"
            programs.append(program)
    return routine_of_plan(plan, programs)


def _diagnostic(fault: Any, routine: Routine) -> dict[str, Any]:
    """A binding fault in the verify contract's form."""
    from cake_ir.fault import Fault
    from cake_verify.diagnostic import Diagnostic

    span = fault.span or routine.span
    help = f"the task binds by exact names: call it `{fault.nearest}` wherever it is used" if fault.nearest else ""
    located = Fault(BINDING, fault.message, span, help=help, facts={"parameter": fault.parameter, "nearest": fault.nearest})
    return Diagnostic.from_fault(located, routine.name, routine.target).to_json()

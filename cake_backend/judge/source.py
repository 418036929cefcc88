"""From text to one program that a task can bind: verify, specialise, check parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cake_backend.judge.status import Status
from cake_backend.task import Task

if TYPE_CHECKING:
    from cake_ir.program import Program

BINDING = "N070"
"""The code of a parameter that the task cannot bind."""


@dataclass(slots=True)
class Source:
    """The outcome: a program, or a status that says why there is none. `verdict` is the verify contract's object."""

    verdict: dict[str, Any]
    program: Program | None = None
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
) -> Source:
    """Never raises for what the text holds.

    `target` is what to build for, whatever the schedule names; without it a schedule for several targets is built for
    `prefer` (the device that is here) if it names that one, else for its first.
    """
    from cake_ir.frontend import parse, specialise
    from cake_verify import verify_text

    module = parse(text)
    template = module.schedule(schedule)
    if not target and template is not None and (not template.targets or prefer in template.targets):
        target = prefer
    verdict = verify_text(text, params=params, target=target, schedule=schedule)
    out = Source(verdict.to_json())
    if verdict.verdict == "fail":
        first = verdict.errors[0]
        out.status = Status.STATIC_REJECT
        out.summary = f"rejected by gate {first.gate}, line {first.span.line}: [{first.code}] {first.message}"
        return out
    if module.plan is not None or (len(module.schedules) > 1 and schedule is None):
        out.status = Status.NOT_LOWERED
        out.summary = "a module with several schedules or a plan is known, not run in this build"
        return out
    assert template is not None, "verified without a fault, so there is a schedule"
    if not target and not template.targets:
        out.status, out.summary = Status.UNDECIDED, "no target: the schedule names none and none was asked for"
        return out
    if verdict.verdict == "undecided":
        note = next((d for d in verdict.diagnostics if d.severity == "note"), None)
        out.findings.append({"kind": "undecided", "text": note.message if note else "the gates could not decide"})
        if not allow_undecided:
            out.status, out.summary = Status.UNDECIDED, out.findings[-1]["text"]
            return out
    own = {name: value for name, value in params.items() if name in template.tunables}
    program = specialise(template, own, target).program
    assert program is not None, "verified without a fault, so it specialises"
    out.program = program
    if task is not None and (faults := task.check_parameters(program.params)):
        out.status = Status.STATIC_REJECT
        out.summary = faults[0].message
        out.verdict["diagnostics"] = [*out.verdict["diagnostics"], *(_diagnostic(f, program) for f in faults)]
        out.verdict["verdict"] = "fail"
    return out


def _diagnostic(fault: Any, program: Program) -> dict[str, Any]:
    """A binding fault in the verify contract's form."""
    from cake_ir.fault import Fault
    from cake_verify.diagnostic import Diagnostic

    span = fault.span or program.span
    help = f"the task binds by exact names: call it `{fault.nearest}` wherever it is used" if fault.nearest else ""
    located = Fault(BINDING, fault.message, span, help=help, facts={"parameter": fault.parameter, "nearest": fault.nearest})
    return Diagnostic.from_fault(located, program.name, program.target).to_json()

"""Ask the gates about a text, then the rules that this workspace has approved."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from .. import workspace as workspaces

if TYPE_CHECKING:
    from cake_backend.task import Task

_ORDER = {"fail": 2, "undecided": 1, "pass": 0}


def verify_text(
    text: str,
    *,
    params: Mapping[str, Any] | None = None,
    target: str | None = None,
    extents: Mapping[str, int] | None = None,
    filename: str = "<text>",
    strict: bool = False,
    workspace: "workspaces.Workspace | None" = None,
    task: "Task | None" = None,
    repair: bool = False,
) -> dict[str, Any]:
    """The verdict contract's object for `text`, with every finding, the `distilled` gate of the workspace included.

    `target` is what to verify for, whatever the schedules name; schedules that name none otherwise use the workspace's default. With a
    `task` the schedule's run-time parameters must be ones that the task binds. `repair` looks for edits under which the gates pass and no
    rule of the workspace objects; a failing verdict then has `repair`.
    """
    import cake_verify

    def accept(new: str) -> bool:
        return not _objections(new, params, target, workspace)

    verdict = cake_verify.verify_text(
        text,
        params=dict(params or {}),
        target=target,
        default_target=workspace.settings.target if workspace is not None else None,
        extents=dict(extents or {}),
        outputs=_outputs(task),
        filename=filename,
        strict=strict,
        repair=repair,
        accept=accept if repair else None,
    )
    body = cast(dict[str, Any], verdict.to_json(None))
    if task is not None and not _stops(body):
        found = _binding(text, task, params=params, target=target, default_target=workspace.settings.target if workspace else None)
        if found:
            body |= {"diagnostics": [*found, *body["diagnostics"]], "verdict": "fail"}
    if workspace is not None and not _stops(body):
        from . import rules

        approved = rules.approved(workspace)
        if approved:
            started = time.perf_counter()
            found = rules.apply(approved, text, params=params, target=target, default_target=workspace.settings.target)
            if found:
                body["diagnostics"] = [*body["diagnostics"], *found]
                if any(d["severity"] == "error" for d in found):
                    body["verdict"] = "fail"
            body["elapsed_ms"] = round(body["elapsed_ms"] + (time.perf_counter() - started) * 1e3, 3)
    return body


def _objections(text: str, params: Mapping[str, Any] | None, target: str | None, workspace: "workspaces.Workspace | None") -> bool:
    """Whether a rule of the workspace finds an error in a text that the gates pass."""
    if workspace is None:
        return False
    from . import rules

    found = rules.apply(rules.approved(workspace), text, params=params, target=target, default_target=workspace.settings.target)
    return any(d["severity"] == "error" for d in found)


def question(*, target: str | None, extents: Mapping[str, int] | None, task: str | None, rules: tuple[str, ...]) -> str:
    """What a verdict answers, as a key: the gates' version, target, extents, task and the rules in force."""
    from ..store.identity import canonical_json
    from .version import engine_version

    return canonical_json({"cake": engine_version(), "target": target, "extents": dict(extents or {}), "task": task, "rules": rules})


def worst(verdicts: list[str]) -> str:
    """fail before undecided before pass."""
    return max(verdicts, key=lambda verdict: _ORDER[verdict], default="pass")


def _binding(
    text: str, task: "Task", *, params: Mapping[str, Any] | None, target: str | None, default_target: str | None
) -> list[dict[str, Any]]:
    """What keeps a text with one schedule, or its plan, from being bound to the task."""
    from cake_backend.judge.source import BINDING
    from cake_ir.fault import Fault
    from cake_verify.diagnostic import Diagnostic

    from . import programs

    bound = programs.bound_by(text, params=dict(params or {}), target=target, default_target=default_target)
    if bound is None:
        return []
    return [
        Diagnostic.from_fault(
            Fault(BINDING, fault.message, fault.span or bound.span, help=f"did you mean `{fault.nearest}`?" if fault.nearest else ""),
            bound.name,
            bound.target,
        ).to_json()
        for fault in task.check_parameters(bound.params)
    ]


def _outputs(task: "Task | None") -> dict[str, str]:
    """The tensors that the task has to be given back, with what each is in words."""
    return {n: f"an output of task `{task.name}`" for n, t in task.tensors.items() if t.mode != "in" and not t.optional} if task is not None else {}


def _stops(body: dict[str, Any]) -> bool:
    """Whether the text has no program that a rule could look at."""
    return any(d["severity"] == "error" and d["gate"] in ("construct", "conformance", "consistency") for d in body["diagnostics"])

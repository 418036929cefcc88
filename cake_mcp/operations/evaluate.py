"""Evaluate a candidate on a task: queue it, do it in the job's process, and turn the record into rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..store import Candidate, Job
from ..store.identity import digest, fresh, job_key
from ..workspace import Workspace
from . import tasks
from .misuse import Misuse, unknown
from .propose import get_candidate, judge_text
from .version import engine_version

KIND = "evaluate"
_ENVIRONMENT = ("device", "driver", "nvrtc", "target")


def submit(
    workspace: Workspace,
    candidate: Candidate,
    *,
    task: str | None,
    device: str,
    target: str | None = None,
    options: Mapping[str, Any] | None = None,
    again: bool = False,
) -> tuple[Job, bool]:
    """Queue the evaluation, or find the one that has been queued or done before; the job, and whether it is new.

    Raises `Misuse` if no task is named or known, or the device or an option is none.
    """
    from cake_backend.judge.plan import Options, plan_hash

    name = task or candidate.task
    if name is None:
        raise Misuse(f"candidate {candidate.id} has no task; name one of: {', '.join(sorted(tasks.known(workspace)))}")
    wanted = tasks.get(workspace, name)
    _check_device(device)
    try:
        chosen_options = Options.of(options)
        plan = plan_hash(wanted, chosen_options)
        for shape in chosen_options.shapes:
            wanted.shape(shape)
    except (TypeError, ValueError) as error:
        raise Misuse(f"options of the evaluation: {error}") from error
    chosen = target or candidate.target
    request = {"candidate": candidate.id, "task": name, "target": chosen, "device": device, "options": dict(options or {})}
    asked = digest(plan, tasks.digest(wanted), chosen or "", workspace.settings.target or "", engine_version())
    return workspace.store.jobs.submit(job_key(candidate.text, candidate.params, asked, device), KIND, candidate.id, request, again=again)


def perform(workspace: Workspace, job: Job, owner: str) -> str:
    """Do a job in its own process: evaluate, then store run, prediction, failure and the job's end in one transaction; the run's id."""
    store = workspace.store
    candidate = get_candidate(workspace, job.request["candidate"])
    identifier = fresh("r")
    folder = workspace.folder("runs") / identifier
    folder.mkdir(parents=True)

    def progress(stage: str, fraction: float = 0.0, message: str = "") -> None:
        store.jobs.report(job.id, owner, stage=stage, progress=fraction, message=message)

    record = _record(workspace, candidate, job, progress, folder)
    with store.database.write():
        if not store.jobs.finish(job.id, owner, run=identifier):
            raise RuntimeError("the job was cancelled or adopted while its work was being done")
        keep(workspace, candidate, record, identifier=identifier, task=job.request["task"], folder=folder, job=job.id)
    return identifier


def keep(
    workspace: Workspace, candidate: Candidate, record: Mapping[str, Any], *, identifier: str, task: str, folder: Path, job: str | None = None
) -> None:
    """Store a record as a run of the candidate, with its prediction and, where it counts against the candidate, its failure."""
    store = workspace.store
    with store.database.write():
        store.runs.record(
            candidate.id, record, status=record["status"], evidence=record["evidence"], identifier=identifier, job=job, task=task,
            device=record.get("device"), target=record.get("target"), folder=str(folder),
        )  # fmt: skip
        if record.get("prediction"):
            store.predictions.record(candidate.id, record.get("device"), record["prediction"])
        if _blames(record["status"]):
            store.failures.record(
                candidate.id, stage="judge", code=record["status"], message=record["summary"], run=identifier,
                environment={name: record[name] for name in _ENVIRONMENT if record.get(name) is not None},
            )  # fmt: skip


def _record(workspace: Workspace, candidate: Candidate, job: Job, progress: Any, folder: Path) -> dict[str, Any]:
    """The judge's record; the gates of the workspace, its own rules included, are asked first."""
    from cake_backend.judge import evaluate

    request = job.request
    verdict, outline = judge_text(workspace, candidate, target=request["target"], task=request["task"])
    rule = next((d for d in verdict["diagnostics"] if d["gate"] == "distilled" and d["severity"] == "error"), None)
    if rule is not None:
        summary = f"rejected by a rule of this workspace, line {rule['span']['line']}: [{rule['code']}] {rule['message']}"
        return {
            "status": "STATIC_REJECT",
            "summary": summary,
            "evidence": "none",
            "verify": verdict,
            "findings": [],
            "task": request["task"],
        }
    return evaluate(
        candidate.text,
        params=dict(candidate.params),
        task=tasks.get(workspace, request["task"]),
        target=request["target"] or (None if outline.has_target else workspace.settings.target),
        device=None if request["device"] == "auto" else request["device"],
        options=request["options"],
        progress=progress,
        workdir=folder,
    )


def _blames(status: str) -> bool:
    """Whether a status counts against the candidate, and not against the machine, the task or Cake."""
    from cake_backend.judge import Status

    return status in {s.value for s in Status if s.blames_candidate and not s.good}


def _check_device(device: str) -> None:
    from cake_ir.targets import DEVICES

    kinds = ("auto", "gpu", "simulate")
    number = device.removeprefix("gpu:")
    if device not in kinds and device not in DEVICES and not (number != device and number.isdecimal()):
        raise unknown("device", device, [*kinds, "gpu:0", *DEVICES])

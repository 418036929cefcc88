"""Evaluate a candidate on a task: queue it, do it in the job's process, and turn the record into rows."""

import hashlib
from collections.abc import Mapping
from typing import Any

from ..store import Candidate, Job
from ..store.identity import canonical_json, fresh, job_key
from ..workspace import Workspace
from . import tasks
from .misuse import Misuse
from .propose import get_candidate
from .version import engine_version

KIND = "evaluate"
_ENVIRONMENT = ("device", "gpu", "driver", "nvrtc", "target", "cake", "versions")


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

    Raises `Misuse` if no task is named or known.
    """
    name = task or candidate.task
    if name is None:
        raise Misuse(f"candidate {candidate.id} has no task; name one of: {', '.join(sorted(tasks.known(workspace)))}")
    wanted = tasks.get(workspace, name)
    request = {
        "candidate": candidate.id,
        "task": name,
        "target": target or candidate.target or workspace.settings.target,
        "device": device,
        "options": dict(options or {}),
    }
    plan = hashlib.sha256(canonical_json([tasks.digest(wanted), request, engine_version()]).encode()).hexdigest()
    return workspace.store.jobs.submit(job_key(candidate.text, candidate.params, plan, device), KIND, candidate.id, request, again=again)


def perform(workspace: Workspace, job: Job, owner: str) -> str:
    """Do a job in its own process: evaluate, then store run, prediction, failure and the job's end in one transaction; the run's id."""
    from cake_backend.judge import evaluate

    store = workspace.store
    candidate = get_candidate(workspace, job.request["candidate"])
    task = tasks.get(workspace, job.request["task"])
    identifier = fresh("r")
    folder = workspace.folder("runs") / identifier
    folder.mkdir(parents=True)

    def progress(stage: str, fraction: float = 0.0, message: str = "") -> None:
        store.jobs.report(job.id, owner, stage=stage, progress=fraction, message=message)

    record = evaluate(
        candidate.text,
        params=dict(candidate.params),
        task=task,
        target=job.request["target"],
        device=None if job.request["device"] == "auto" else job.request["device"],
        options=dict(job.request["options"]),
        progress=progress,
        workdir=folder,
    )
    with store.database.write():
        if not store.jobs.finish(job.id, owner, run=identifier):
            raise RuntimeError("the job was cancelled or adopted while its work was being done")
        store.runs.record(
            candidate.id, record, status=record["status"], evidence=record["evidence"], identifier=identifier, job=job.id, task=task.name,
            device=record.get("device"), target=record.get("target"), folder=str(folder),
        )  # fmt: skip
        if record.get("prediction"):
            store.predictions.record(candidate.id, record.get("device"), record["prediction"])
        if not record["status"].startswith("PASSED"):
            store.failures.record(
                candidate.id, stage="judge", code=record["status"], message=record.get("summary", record["status"]), run=identifier,
                environment={name: record[name] for name in _ENVIRONMENT if name in record},
            )  # fmt: skip
    return identifier

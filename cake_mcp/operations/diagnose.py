"""Why a run came out as it did, and where the fix belongs."""

from dataclasses import dataclass
from typing import Any

from ..store import Candidate, Run
from ..workspace import Workspace
from . import programs, tactics, tasks
from .misuse import Misuse, unknown
from .propose import get_candidate
from .verify import verify_text


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """The run that was looked at, its candidate, findings as JSON values, most important first, and tactics that may help.

    `verdict` is the verdict contract's object with `repair`, where the gates reject the candidate and a search was wanted.
    """

    run: Run
    candidate: Candidate
    findings: list[dict[str, Any]]
    tactics: list[dict[str, Any]]
    verdict: dict[str, Any] | None = None


def diagnose(workspace: Workspace, *, run: str | None = None, candidate: str | None = None, repair: bool = True) -> Diagnosed:
    """Diagnose a run, or the newest run of a candidate. Raises `Misuse` where there is none.

    `repair` looks for edits where the gates reject the candidate, which they may do though the run was made: they may have learned since.
    """
    from cake_backend import diagnose as backend

    found = _run(workspace, run, candidate)
    owner = get_candidate(workspace, found.candidate)
    made = programs.programs_of(
        owner.text, params=owner.params, target=found.target or owner.target, default_target=workspace.settings.target
    )
    known = tasks.known(workspace)
    task = known.get(found.task or "")
    findings = backend.diagnose(
        found.body, made[0] if len(made) == 1 else None, owner.text, scalars=task.scalar_values if task is not None else None
    )
    one = made[0] if len(made) == 1 else None
    called = tactics.advice(workspace, [finding.id for finding in findings], one)
    verdict = _searched(workspace, owner, found) if repair and not found.status.startswith("PASSED") else None
    return Diagnosed(found, owner, [finding.to_json() for finding in findings], called, verdict)


def _searched(workspace: Workspace, owner: Candidate, run: Run) -> dict[str, Any] | None:
    """The verdict on a candidate that the gates reject, with the edits that a search found; None where they pass it."""
    body = verify_text(
        owner.text, params=owner.params, target=run.target or owner.target, filename=owner.id, workspace=workspace, repair=True
    )
    return body if body["verdict"] == "fail" and "repair" in body else None


def _run(workspace: Workspace, run: str | None, candidate: str | None) -> Run:
    store = workspace.store
    if run is not None:
        found = store.runs.get(run)
        if found is None:
            recent = [r.id for c in store.candidates.recent(50) for r in store.runs.of(c.id)]
            raise unknown("run", run, recent, then="run ids come from `compile_and_run`")
        return found
    owner = get_candidate(workspace, candidate or "")
    runs = store.runs.of(owner.id, 1)
    if not runs:
        raise Misuse(f"candidate {owner.id} has not been run: call `compile_and_run` first, or `verify` (with `repair` for edits) for what the gates say")
    return runs[0]

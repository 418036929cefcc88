"""Order candidates by predicted time, as far as the model can tell them apart."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..store import Candidate
from ..workspace import Workspace
from . import programs, tasks
from .misuse import Misuse, unknown
from .propose import get_candidate, judge_text

if TYPE_CHECKING:
    from cake_backend.task import Shape, Task

MAX_CANDIDATES = 64


@dataclass(frozen=True, slots=True)
class Ranked:
    """The answer: what the cost model says (its JSON, every figure predicted), what was left out and why, and what to run."""

    task: str
    shape: str
    axes: dict[str, int]
    device: str
    ranking: dict[str, Any]
    sentences: dict[str, str]
    picks: list[dict[str, Any]] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)


def rank(
    workspace: Workspace, identifiers: Sequence[str], *, task: str | None = None, shape: str | None = None, device: str | None = None,
    budget: int = 3,
) -> Ranked:  # fmt: skip
    """Rank stored candidates for one shape of a task (its largest timed one by default). Candidates that the gates reject are left out.

    Raises `Misuse` for unknown ids, tasks, shapes or devices, and where the candidates are for different tasks and none is named.
    """
    candidates = [get_candidate(workspace, identifier) for identifier in dict.fromkeys(identifiers)]
    if not 1 <= len(candidates) <= MAX_CANDIDATES:
        raise Misuse(f"between 1 and {MAX_CANDIDATES} candidates can be ranked at a time, found {len(candidates)}")
    wanted = tasks.get(workspace, task or _task_of(workspace, candidates))
    chosen = shape_of(wanted, shape)
    rejected: dict[str, str] = {}
    entries: list[tuple[str, Any, Any]] = []
    for candidate in candidates:
        made = _program(workspace, candidate, wanted)
        if isinstance(made, str):
            rejected[candidate.id] = made
        else:
            entries.append((candidate.id, made, _compiled(workspace, candidate, made.target)))
    board = board_of(workspace, device, entries[0][1].target if entries else "sm_90a")
    return _rank(wanted, chosen, board, entries, rejected, budget)


def _rank(task: "Task", shape: "Shape", board: str, entries: list[tuple[str, Any, Any]], rejected: dict[str, str], budget: int) -> Ranked:
    from cake_backend.cost.rank import rank as rank_programs

    layouts = task.layouts(shape.axes)
    extents = {(name, dim): extent for name, layout in layouts.items() for dim, extent in enumerate(layout.shape)}
    ranking = rank_programs(entries, task.scalar_values(shape.axes), device=board, extents=extents)
    picks = [{"candidate_id": pick.id, "why": pick.why} for pick in ranking.choose(budget)]
    sentences = {identifier: prediction.sentence() for identifier, prediction in ranking.predictions.items()}
    return Ranked(task.name, shape.name, dict(shape.axes), board, ranking.to_json(), sentences, picks, rejected)


def _task_of(workspace: Workspace, candidates: list[Candidate]) -> str:
    names = {candidate.task for candidate in candidates if candidate.task}
    if len(names) == 1:
        return names.pop()
    if not names:
        raise Misuse(f"no candidate has a task; name one of: {', '.join(sorted(tasks.known(workspace)))}")
    raise Misuse(f"the candidates are for different tasks ({', '.join(sorted(names))}); name one, or rank them apart")


def shape_of(task: "Task", name: str | None) -> "Shape":
    """The shape of that name, or the task's largest timed one. Raises `Misuse` for a name that it has not."""
    if name is None:
        timed = [shape for shape in task.shapes if shape.kind == "bench"] or list(task.shapes)
        return max(timed, key=lambda shape: sum(task.work(shape.axes).values()))
    found = next((shape for shape in task.shapes if shape.name == name), None)
    if found is None:
        raise unknown("shape", name, [shape.name for shape in task.shapes])
    return found


def _program(workspace: Workspace, candidate: Candidate, task: "Task") -> Any:
    """The candidate's one program, or why it is left out."""
    verdict = workspace.store.verdicts.latest(candidate.id)
    body = verdict.body if verdict else judge_text(workspace, candidate, task=task.name)[0]
    if body["verdict"] == "fail":
        first = next(d for d in body["diagnostics"] if d["severity"] == "error")
        return f"rejected by gate {first['gate']}: [{first['code']}] {first['message']}"
    made = programs.programs_of(candidate.text, params=candidate.params, target=candidate.target, default_target=workspace.settings.target)
    if len(made) != 1:
        return "a text with several schedules is not ranked in this build"
    faults = task.check_parameters(made[0].params)
    return faults[0].message if faults else made[0]


def _compiled(workspace: Workspace, candidate: Candidate, target: str) -> Any:
    """What the compiler said of the candidate in its newest run for that target, for the second tier of the model."""
    for run in workspace.store.runs.of(candidate.id):
        if run.target == target and isinstance(run.body.get("compile"), dict):
            return run.body["compile"]
    return None


def board_of(workspace: Workspace, name: str | None, target: str) -> str:
    """The board to predict for: the named one, the workspace's, or a common one of the target. Raises `Misuse` for one that nobody knows."""
    from cake_ir.targets import DEVICES

    wanted = name or workspace.settings.device
    if wanted is not None:
        if wanted not in DEVICES:
            raise unknown("device", wanted, DEVICES)
        return wanted
    boards = [board for board, device in DEVICES.items() if device.target == target]
    return "H200-SXM" if "H200-SXM" in boards else boards[0]

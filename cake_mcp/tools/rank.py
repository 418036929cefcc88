"""`rank`: which candidates are worth a GPU run, as far as the cost model can tell them apart."""

from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from ..binding import Answer, Arguments, Reporter, ToolSpec
from ..cleaning import clip
from ..state import ServerState
from . import shapes


class RankArguments(Arguments):
    """Which candidates, for which task, shape and board."""

    candidate_ids: Annotated[list[str], Field(description="Candidate ids (c_...) to compare", min_length=1, max_length=64)]
    task: shapes.TaskName = ""
    shape: Annotated[str, Field(description="Name of one of the task's shapes; default: its largest timed one", max_length=80)] = ""
    device: shapes.DeviceName = ""
    budget: Annotated[int, Field(description="How many candidates you can afford to run", ge=1, le=32)] = 3


class Place(shapes.Part):
    """One candidate in the order."""

    candidate_id: str = Field(description="The candidate")
    group: int | None = Field(default=None, description="Group, 1 is the fastest; equal groups are ties. Absent: not ranked")
    tier: str | None = Field(default=None, description="spec (from the text) or compiled (with the compiler's report of an earlier run)")
    ratio_to_floor: float | None = Field(default=None, description="Predicted time over the least possible on this board")
    milliseconds: float | None = Field(default=None, description="Predicted time, where the board's clock under load is known")
    binding: str | None = Field(default=None, description="What it is predicted to be bound by")
    says: str = Field(description="The prediction, or why there is none, in a sentence")


class RankAnswer(Answer):
    """The order, and what to run."""

    summary: str = Field(description="One sentence")
    ok: bool = Field(description="Whether at least one candidate was ranked")
    evidence: str = Field(description="Always predicted: nothing was run")
    task: str = Field(description="The task")
    shape: str = Field(description="The shape, with its extents")
    device: str = Field(description="The board")
    places: list[Place] = Field(description="Candidates, best group first; those that are not ranked come last")
    run_these: list[dict[str, Any]] = Field(description="What to run with the budget, and why")
    not_worth_running: list[dict[str, Any]] = Field(description="Beaten by another under every assumption of the model")
    rejected: dict[str, str] = Field(description="Left out: the gates reject them, or they do not fit the task")
    duplicates: dict[str, str] = Field(description="Same program as another candidate")
    distinct_designs: int = Field(description="How many different designs there are; variants of one design count once")
    next_actions: list[str] = Field(description="What to do next")


async def run(state: ServerState, arguments: RankArguments, report: Reporter) -> RankAnswer:
    """Predict in a worker thread."""
    return await anyio.to_thread.run_sync(_rank, state, arguments, abandon_on_cancel=True)


def _rank(state: ServerState, arguments: RankArguments) -> RankAnswer:
    from ..operations import rank as ranks

    found = ranks.rank(
        state.workspace,
        arguments.candidate_ids,
        task=arguments.task or None,
        shape=arguments.shape or None,
        device=arguments.device or None,
        budget=arguments.budget,
    )
    places = _places(found.ranking, found.sentences)
    ranked = [place for place in places if place.group is not None]
    groups = len({place.group for place in ranked})
    withheld = len(places) - len(ranked)
    summary = f"{len(ranked)} ranked in {groups} groups, {withheld} not ranked, {len(found.rejected)} rejected; predicted for {found.device}, nothing was run"
    actions = [f"compile_and_run {pick['candidate_id']} ({pick['why']})" for pick in found.picks[:4]]
    if withheld and not ranked:
        actions.append("run them: the model does not know this family, and says so")
    return RankAnswer(
        summary=clip(summary, 300),
        ok=bool(ranked),
        evidence="predicted",
        task=found.task,
        shape=f"{found.shape}: " + ", ".join(f"{name}={extent}" for name, extent in found.axes.items()),
        device=found.device,
        places=places,
        run_these=found.picks,
        not_worth_running=found.ranking["dropped"],
        rejected={identifier: clip(reason, 300) for identifier, reason in found.rejected.items()},
        duplicates=found.ranking["duplicates"],
        distinct_designs=found.ranking["distinct_designs"],
        next_actions=[clip(action, 200) for action in actions],
    )


def _places(ranking: dict[str, Any], sentences: dict[str, str]) -> list[Place]:
    group = {identifier: entry["rank"] for entry in ranking["groups"] for identifier in entry["tied"]}
    behind = len(ranking["groups"]) + 1
    group |= {identifier: behind for identifier in ranking["last"]}
    places = []
    for identifier, prediction in ranking["predictions"].items():
        seconds = prediction["seconds"]
        last = ranking["last"].get(identifier)
        places.append(
            Place(
                candidate_id=identifier,
                group=group.get(identifier),
                tier=prediction["tier"],
                ratio_to_floor=round(prediction["ratio_to_floor"], 3) if prediction["ratio_to_floor"] else None,
                milliseconds=round(seconds["mid"] * 1e3, 4) if seconds else None,
                binding=prediction["binding"] or None,
                says=clip((f"sorts last: {last}; " if last else "") + sentences[identifier], 400),
            )
        )
    return sorted(places, key=lambda place: (place.group is None, place.group or 0, place.candidate_id))


def text(answer: RankAnswer) -> str:
    """The text twin."""
    lines = [answer.summary]
    lines += [f"{place.group or '-'}  {place.candidate_id}  {clip(place.says, 200)}" for place in answer.places[:12]]
    lines += [f"rejected {identifier}: {clip(reason, 200)}" for identifier, reason in list(answer.rejected.items())[:4]]
    return shapes.with_next(lines, answer.next_actions)


TOOL = ToolSpec(
    name="rank",
    title="Rank candidates",
    description=(
        "Orders candidates of one task by predicted time on a board, without running anything, and says which ones to spend GPU runs on. "
        "Candidates that the model cannot tell apart share a group: a tie is a tie. What the model does not cover is not ranked, with the "
        "reason, and still gets a share of the runs. A candidate that was compiled before is judged with the compiler's report too (spills, "
        "serialised MMA), so ranking again after a compile is worth while.\n"
        "Every figure is predicted; never report one as measured. Use it before compile_and_run whenever you have more variants than runs."
    ),
    arguments=RankArguments,
    answer=RankAnswer,
    text=text,
    run=run,
    read_only=True,
    idempotent=True,
)

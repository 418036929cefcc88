"""`propose_candidate`: take a kernel into the store and verify it at once."""

from typing import Annotated

import anyio.to_thread
from pydantic import Field

from ..binding import Answer, Arguments, Reporter, ToolSpec
from ..state import ServerState
from . import shapes
from .verify import summary_of


class ProposeArguments(Arguments):
    """A whole text; or a parent with parameters; or a parent with edits."""

    text: Annotated[str, Field(description="Whole text of the kernel in Cake IR")] = ""
    parent: Annotated[
        str, Field(description="Candidate id to start from, with `params` or `edits`; also records lineage for a whole text", max_length=80)
    ] = ""
    params: shapes.Params = Field(default_factory=dict)
    edits: Annotated[
        list[shapes.TextEdit],
        Field(
            description="Edits of the parent's text, all at once: {span, text} as fixes carry them, or {find, replace} with a unique match",
            max_length=200,
        ),
    ] = Field(default_factory=list)
    target: shapes.TargetName = ""
    task: shapes.TaskName = ""
    rationale: Annotated[str, Field(description="Why this should be better, in a sentence; kept with the lineage", max_length=2000)] = ""
    max_diagnostics: Annotated[int, Field(description="How many findings to show", ge=1, le=50)] = 10


class ProposeAnswer(Answer):
    """The stored candidate and its verdict."""

    summary: str = Field(description="One sentence")
    ok: bool = Field(description="Whether the verdict is pass")
    candidate_id: str = Field(description="Id of the stored candidate; equal text, parameters, target and task give the same id")
    new: bool = Field(description="Whether it was not known before")
    verdict: shapes.Verdict = Field(description="What the gates say")
    target: str | None = Field(default=None, description="The target it was verified for")
    task: str | None = Field(default=None, description="The task it is meant for")
    parent: str | None = Field(default=None, description="The candidate it was made from")
    schedules: list[str] = Field(description="Names of the schedules in the text")
    params: dict[str, shapes.Scalar] = Field(description="Compile-time parameters with the values in force")
    same_program_as: list[str] = Field(description="Other candidates whose text stands for the same program")
    counts: shapes.Counts = Field(description="How many findings there are in all")
    diagnostics: list[shapes.Diagnostic] = Field(description="The findings, errors first")
    elapsed_ms: float = Field(description="Time the gates took")
    next_actions: list[str] = Field(description="What to do next")


async def run(state: ServerState, arguments: ProposeArguments, report: Reporter) -> ProposeAnswer:
    """Store and verify in a worker thread."""
    return await anyio.to_thread.run_sync(_propose, state, arguments, abandon_on_cancel=True)


def _propose(state: ServerState, arguments: ProposeArguments) -> ProposeAnswer:
    from ..operations.propose import Proposal, propose

    proposed = propose(
        state.workspace,
        Proposal(
            text=arguments.text,
            parent=arguments.parent,
            params=arguments.params,
            edits=[edit.to_edit() for edit in arguments.edits],
            target=arguments.target,
            task=arguments.task,
            rationale=arguments.rationale,
            proposer=state.proposer,
        ),
    )
    body, candidate = proposed.verdict, proposed.candidate
    page, counts, _ = shapes.diagnostics_page(body["diagnostics"], arguments.max_diagnostics)
    return ProposeAnswer(
        summary=f"{candidate.id} {'stored' if proposed.new else 'known already'}; {summary_of(body, counts)}",
        ok=body["verdict"] == "pass",
        candidate_id=candidate.id,
        new=proposed.new,
        verdict=body["verdict"],
        target=body.get("target") or candidate.target,
        task=candidate.task,
        parent=arguments.parent or None,
        schedules=list(proposed.outline.schedules),
        params=proposed.outline.params,
        same_program_as=proposed.same_program_as[:8],
        counts=counts,
        diagnostics=page,
        elapsed_ms=body["elapsed_ms"],
        next_actions=_next(candidate.id, candidate.task, body, proposed.outline.params),
    )


def _next(candidate: str, task: str | None, body: dict, params: dict) -> list[str]:
    if body["verdict"] == "pass":
        actions = [f"compile_and_run {candidate}" + ("" if task else " with a task")]
        if params:
            actions.append(f"propose variants with parent={candidate} and params ({', '.join(list(params)[:6])}), then rank them")
        return actions
    errors = [d for d in body["diagnostics"] if d["severity"] == "error"]
    actions = []
    if any(d.get("fixes") for d in errors):
        actions.append(f"propose_candidate with parent={candidate} and edits = the edits of a fix above")
    if errors and not any(fix["grade"] != "idea" for fix in errors[0].get("fixes") or ()):
        actions.append(f"verify {candidate} with repair=true: edits under which every gate passes are looked for")
    return actions + [f"read cake://codes/{code}" for code in list(dict.fromkeys(d["code"] for d in errors))[:2]]


def text(answer: ProposeAnswer) -> str:
    """The text twin."""
    return shapes.with_next([answer.summary, *shapes.diagnostics_text(answer.diagnostics[:5])], answer.next_actions)


TOOL = ToolSpec(
    name="propose_candidate",
    title="Propose a kernel",
    description=(
        "Stores a kernel in Cake IR and verifies it at once. Three ways: `text` alone; `parent` with `params` (a variant is a parent plus a "
        "few numbers); `parent` with `edits` (fixes of a diagnostic as they are, or find/replace). Never resend a whole text for a change.\n"
        "Rejected kernels are stored too, with their verdict: failures are what rules are distilled from. Nothing is compiled or run. The "
        "language is described at cake://language, targets at cake://targets.\n"
        "Answers with the candidate id, the verdict, located findings with fixes, and the parameters in force. Next: apply a fix; propose "
        "variants and rank them; compile_and_run."
    ),
    arguments=ProposeArguments,
    answer=ProposeAnswer,
    text=text,
    run=run,
    read_only=False,
    idempotent=True,
)

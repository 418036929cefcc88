"""`diagnose`: from the evidence of a run to findings, each routed to where its fix belongs."""

from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from ..binding import Answer, Arguments, Reporter, ToolSpec
from ..cleaning import clip, clip_all
from ..operations.misuse import Misuse
from ..state import ServerState
from . import shapes


class DiagnoseArguments(Arguments):
    """Which run."""

    run_id: Annotated[str, Field(description="Run id (r_...) from compile_and_run", max_length=80)] = ""
    candidate_id: Annotated[str, Field(description="Candidate whose newest run to diagnose, instead of run_id", max_length=80)] = ""
    repair: Annotated[
        bool, Field(description="Where the gates reject it, look for edits under which they pass: up to 2 s, verified again, not run")
    ] = True
    max_findings: Annotated[int, Field(description="How many findings to show", ge=1, le=20)] = 5


class Finding(shapes.Part):
    """One finding."""

    id: str = Field(description="Kind: B.. what bounds the time, W.. how the numbers are wrong, E.. how the run ended")
    name: str = Field(description="The kind in words")
    claim: str = Field(description="What is the case, in this program's names")
    route: str = Field(description="Where the fix belongs: candidate, verifier, cost model, lowering, vocabulary or environment")
    edit: str = Field(description="What to change")
    line: int | None = Field(default=None, description="Line of the schedule")
    role: str | None = Field(default=None, description="Role of the schedule")
    numbers: dict[str, Any] = Field(default_factory=dict, description="What the claim rests on")
    basis: list[str] = Field(default_factory=list, description="Where those numbers come from: measured, simulated, compiled, predicted")
    gain: dict[str, Any] | None = Field(default=None, description="At most this share of the time can be saved, and how that was found")
    refuted_by: str | None = Field(default=None, description="What would prove the claim wrong")
    absent: list[str] = Field(default_factory=list, description="Evidence that would help and is not there")
    certain: bool = Field(description="Whether it follows from the evidence without a model")


class Tactic(shapes.Part):
    """A page on an edit that pays, with its evidence and a schedule before and after."""

    name: str = Field(description="Its name")
    title: str = Field(description="What it says")
    effect: str = Field(description="What it was worth where it was measured")
    lines: list[int] = Field(description="Lines of this schedule where it may apply")
    called_for: bool = Field(description="Whether a finding calls for it")
    resource: str = Field(description="Where the page is")


class DiagnoseAnswer(Answer):
    """The findings."""

    summary: str = Field(description="One sentence")
    ok: bool = Field(description="Whether the run had passed")
    run_id: str = Field(description="The run")
    candidate_id: str = Field(description="Its candidate")
    status: str = Field(description="Its status")
    evidence: str = Field(description="The strongest evidence it has: measured, simulated, predicted or none")
    findings: list[Finding] = Field(description="Most important first: wrong numbers and failures, then time by what can be gained")
    total: int = Field(description="How many findings there are in all")
    repair: shapes.Repair | None = Field(default=None, description="Where the gates reject the candidate: edits under which they pass")
    tactics: list[Tactic] = Field(description="Pages that may help: called for by a finding, or their precondition holds here")
    next_actions: list[str] = Field(description="What to do next")


async def run(state: ServerState, arguments: DiagnoseArguments, report: Reporter) -> DiagnoseAnswer:
    """Diagnose in a worker thread."""
    return await anyio.to_thread.run_sync(_diagnose, state, arguments, abandon_on_cancel=True)


def _diagnose(state: ServerState, arguments: DiagnoseArguments) -> DiagnoseAnswer:
    from ..operations.diagnose import diagnose

    if bool(arguments.run_id) == bool(arguments.candidate_id):
        raise Misuse("give either `run_id` or `candidate_id`")
    found = diagnose(state.workspace, run=arguments.run_id or None, candidate=arguments.candidate_id or None, repair=arguments.repair)
    repair = shapes.repair_of(found.verdict or {})
    shown = [Finding.model_validate(clip_all(finding, 600, 12)) for finding in found.findings[: arguments.max_findings]]
    first = shown[0] if shown else None
    summary = f"{found.run.id} {found.run.status}: " + (
        f"{first.name}: {first.claim}" if first else "nothing stands out in the evidence there is"
    )
    return DiagnoseAnswer(
        summary=clip(summary, 300),
        ok=found.run.status.startswith("PASSED"),
        run_id=found.run.id,
        candidate_id=found.candidate.id,
        status=found.run.status,
        evidence=found.run.evidence,
        findings=shown,
        total=len(found.findings),
        repair=repair,
        tactics=[Tactic.model_validate(clip_all(tactic, 300)) for tactic in found.tactics[:4]],
        next_actions=_next(found.candidate.id, shown, repair),
    )


def _next(candidate: str, findings: list[Finding], repair: shapes.Repair | None) -> list[str]:
    if repair is not None and repair.fixes:
        return [f"propose_candidate with parent={candidate} and the edits of repair.fixes[0]; they were verified, not run: judge the numbers"]
    by_route = {
        "candidate": f"propose_candidate with parent={candidate}: {{edit}}",
        "verifier": f"propose_rule with evidence=[{candidate}]: the gates missed this",
        "cost model": "keep this run as evidence: the prediction is off",
        "lowering": "report the build: the schedule does not ask for this",
        "vocabulary": "say it with other operations, or report the gap",
        "environment": "run `cake doctor`, then the same evaluation again",
    }
    actions = [by_route[f.route].replace("{edit}", f.edit) for f in findings[:3] if f.route in by_route]
    return [clip(action, 240) for action in dict.fromkeys(actions)]


def text(answer: DiagnoseAnswer) -> str:
    """The text twin."""
    lines = [answer.summary]
    for f in answer.findings:
        gain = f", at most {f.gain['at_most']:.0%} to gain" if f.gain else ""
        where = f" line {f.line}" if f.line else ""
        lines.append(f"[{f.id}]{where} {clip(f.claim, 240)} ({f.route}{gain})")
    lines += shapes.repair_text(answer.repair)
    lines += [f"tactic: {tactic.title} ({tactic.resource})" for tactic in answer.tactics]
    return shapes.with_next(lines, answer.next_actions)


TOOL = ToolSpec(
    name="diagnose",
    title="Diagnose a run",
    description=(
        "Explains a run: which tiles are wrong and in what pattern, what a hang waits for, what the assembler did, what bounds the time and "
        "how much could be gained at most. Each finding says where its fix belongs: the candidate (an edit), the verifier (propose_rule), the "
        "cost model, the lowering, the vocabulary, the environment; what it rests on; and what would refute it. Evidence that is not there is "
        "named as absent, never given as zero. Where the gates reject the candidate, edits that make it verify are looked for.\n"
        "Use it after compile_and_run, with the run id, whether the run passed or not. Next: propose_candidate with the edit, or propose_rule."
    ),
    arguments=DiagnoseArguments,
    answer=DiagnoseAnswer,
    text=text,
    run=run,
    read_only=True,
    idempotent=True,
)

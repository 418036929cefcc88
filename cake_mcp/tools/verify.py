"""`verify`: what the gates say about a stored candidate or a text, without storing anything new."""

from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from ..binding import Answer, Arguments, Reporter, ToolSpec
from ..cleaning import clip
from ..operations.misuse import Misuse
from ..state import ServerState
from . import shapes


class VerifyArguments(Arguments):
    """What to verify, and for which target."""

    candidate_id: shapes.CandidateId = ""
    text: Annotated[str, Field(description="A text to verify without storing it, instead of candidate_id")] = ""
    params: shapes.Params = Field(default_factory=dict)
    target: shapes.TargetName = ""
    task: shapes.TaskName = ""
    extents: Annotated[
        dict[str, int], Field(description='Extents of runtime arguments by name, for example {"M": 4096}', max_length=64)
    ] = Field(default_factory=dict)
    repair: Annotated[
        bool, Field(description="Look for small edits under which it passes: up to 2 s, verified again, not checked for what they compute")
    ] = False
    max_diagnostics: Annotated[int, Field(description="How many findings to show", ge=1, le=50)] = 10
    portability: Annotated[
        bool, Field(description="Also say on which of the seven targets it would run, why not on the others, and the smallest change where there is one")
    ] = False
    offset: Annotated[int, Field(description="Findings to skip, from `next_offset` of the answer before", ge=0, le=100_000)] = 0


class Ported(shapes.Part):
    """Whether one target would run it."""

    target: str = Field(description="The target")
    verdict: shapes.Verdict = Field(description="pass, fail or undecided, of every gate for this target")
    why: list[str] = Field(default_factory=list, description="What stands against it, one sentence a cause")
    change: dict[str, Any] | None = Field(
        default=None,
        description="The smallest change found under which this target passes: `edits`, or `params` (values of tunables); verified again, not timed",
    )


class VerifyAnswer(Answer):
    """The verdict and the findings."""

    summary: str = Field(description="One sentence")
    ok: bool = Field(description="Whether the verdict is pass")
    verdict: shapes.Verdict = Field(description="pass; fail; or undecided, where something could not be decided and the notes say what")
    candidate_id: str | None = Field(default=None, description="The candidate that was verified")
    target: str | None = Field(default=None, description="The target it was verified for")
    counts: shapes.Counts = Field(description="How many findings there are in all")
    diagnostics: list[shapes.Diagnostic] = Field(description="The findings, errors first")
    repair: shapes.Repair | None = Field(default=None, description="With `repair`, where it fails: what the search found")
    next_offset: int | None = Field(default=None, description="Where the next page of findings begins")
    portability: list[Ported] | None = Field(default=None, description="With `portability`: each of the seven targets")
    elapsed_ms: float = Field(description="Time the gates took, from text to verdict")
    next_actions: list[str] = Field(description="What to do next")


async def run(state: ServerState, arguments: VerifyArguments, report: Reporter) -> VerifyAnswer:
    """Verify in a worker thread; the gates bound their own work."""
    return await anyio.to_thread.run_sync(_verify, state, arguments, abandon_on_cancel=True)


def _verify(state: ServerState, arguments: VerifyArguments) -> VerifyAnswer:
    from ..operations import propose, tasks
    from ..operations.verify import verify_text

    if bool(arguments.candidate_id) == bool(arguments.text):
        raise Misuse("give either `candidate_id` or `text`")
    workspace = state.workspace
    candidate = propose.get_candidate(workspace, arguments.candidate_id) if arguments.candidate_id else None
    task = arguments.task or (candidate.task if candidate else None)
    target = arguments.target or (candidate.target if candidate else None)
    text = candidate.text if candidate else arguments.text
    params = {**(candidate.params if candidate else {}), **arguments.params}
    params = {name: value for name, value in params.items() if value is not None}
    if candidate is not None and not arguments.params and not arguments.repair:
        body, _ = propose.judge_text(workspace, candidate, target=target, extents=arguments.extents, task=task)
    else:
        body = verify_text(
            text,
            params=params,
            target=target,
            extents=arguments.extents,
            workspace=workspace,
            task=tasks.get(workspace, task) if task else None,
            repair=arguments.repair,
        )
    page, counts, next_offset = shapes.diagnostics_page(body["diagnostics"], arguments.max_diagnostics, arguments.offset)
    return VerifyAnswer(
        summary=summary_of(body, counts),
        ok=body["verdict"] == "pass",
        verdict=body["verdict"],
        candidate_id=candidate.id if candidate else None,
        target=body.get("target") or target,
        counts=counts,
        diagnostics=page,
        repair=shapes.repair_of(body),
        next_offset=next_offset,
        portability=_ported(text, params) if arguments.portability else None,
        elapsed_ms=body["elapsed_ms"],
        next_actions=_next(body, candidate.id if candidate else None, next_offset),
    )


def _ported(text: str, params: dict[str, Any]) -> list[Ported]:
    """The answer of every target."""
    from cake_verify.porting import ports

    found = ports(text, params=params)
    return [Ported(target=p.target, verdict=p.verdict.verdict, why=list(p.why), change=p.change.to_json() if p.change else None) for p in found]


def summary_of(body: dict[str, Any], counts: shapes.Counts) -> str:
    """One sentence on a verdict."""
    first = next((d for d in body["diagnostics"] if d["severity"] == "error"), None)
    if first is not None:
        more = f" (and {counts.errors - 1} more errors)" if counts.errors > 1 else ""
        return clip(
            f"{body['verdict']} in gate {first['gate']}, line {first['span']['line']}: [{first['code']}] {first['message']}{more}", 300
        )
    if body["verdict"] == "undecided":
        note = next(iter(body["diagnostics"]), None)
        return clip("undecided" + (f": [{note['code']}] {note['message']}" if note else ""), 300)
    return f"pass: every gate, {counts.warnings} warnings, {counts.notes} notes, {body['elapsed_ms']:.1f} ms"


def _next(body: dict[str, Any], candidate: str | None, next_offset: int | None) -> list[str]:
    actions = []
    if body["verdict"] == "pass":
        actions.append(f"rank or compile_and_run {candidate}" if candidate else "propose_candidate with this text")
    elif body.get("repair", {}).get("fixes"):
        where = "propose_candidate with this candidate as parent and" if candidate else "apply"
        actions.append(f"{where} the edits of repair.fixes[0]; then judge the numbers: edits were verified, not run")
    elif any(d["fixes"] for d in body["diagnostics"] if "fixes" in d):
        actions.append(
            "propose_candidate with this candidate as parent and a fix's edits as `edits`" if candidate else "apply a fix's edits"
        )
    if body["verdict"] == "fail" and "repair" not in body and not any(f["grade"] != "idea" for f in body["diagnostics"][0].get("fixes") or ()):
        actions.append("verify again with repair=true: edits under which every gate passes are looked for")
    codes = dict.fromkeys(d["code"] for d in body["diagnostics"] if d["severity"] == "error")
    actions += [f"read cake://codes/{code}" for code in list(codes)[:2]]
    if next_offset is not None:
        actions.append(f"verify again with offset={next_offset} for more findings")
    return actions


def text(answer: VerifyAnswer) -> str:
    """The text twin."""
    ported = [
        f"{p.target}: {p.verdict}" + (f", {p.why[0]}" if p.why else "") + (f"; passes with: {p.change['title']}" if p.change else "")
        for p in answer.portability or ()
    ]
    return shapes.with_next([answer.summary, *shapes.diagnostics_text(answer.diagnostics[:5]), *shapes.repair_text(answer.repair), *ported], answer.next_actions)


TOOL = ToolSpec(
    name="verify",
    title="Verify a kernel",
    description=(
        "Proves a schedule safe or says what is wrong, where, with a trace and an edit. No GPU, no compiler; milliseconds.\n"
        "Use it on a stored candidate (candidate_id), or on a text you are still writing (text). propose_candidate verifies by itself, so "
        "call this for other targets, parameters or extents, or for more findings. Gates, in order: construct, conformance, consistency, "
        "safety (races, deadlocks, phases, fences), schedule, distilled (rules of this workspace).\n"
        "Verdict `undecided` means something could not be decided; the notes say what and what to declare. A failed verdict is a normal "
        "answer with ok=false; repair=true then searches for edits under which every gate passes. Next: propose_candidate with a fix's edits, or rank, or compile_and_run."
    ),
    arguments=VerifyArguments,
    answer=VerifyAnswer,
    text=text,
    run=run,
    read_only=True,
    idempotent=True,
)

"""`compile_and_run`: compile for the exact target, judge on a GPU or in the simulator, and keep the evidence."""

from typing import Annotated, Any

import anyio
import anyio.to_thread
from pydantic import Field

from ..binding import Answer, Arguments, Reporter, ToolSpec
from ..cleaning import clip, clip_all
from ..operations import record
from ..state import ServerState
from ..store import Job, Run
from . import jobs, shapes

_SECTIONS = ("compile", "numerics", "timing", "prediction")


class RunArguments(Arguments):
    """Which candidate to evaluate, on what, and how long to wait for it."""

    candidate_id: shapes.CandidateId
    task: shapes.TaskName = ""
    target: shapes.TargetName = ""
    device: Annotated[
        str,
        Field(
            description="auto (a GPU if there is one, else the simulator), gpu, gpu:N, simulate, or a board such as H200-SXM to predict for",
            max_length=60,
        ),
    ] = "auto"
    shapes: Annotated[list[str], Field(description="Names of the task's shapes to use; empty for all", max_length=16)] = Field(
        default_factory=list
    )
    timing: Annotated[bool, Field(description="Whether to time it too, not only to check its numbers")] = True
    again: Annotated[bool, Field(description="Evaluate anew although the same evaluation has been done")] = False
    wait_s: Annotated[float, Field(description="Seconds to wait for the result before answering with a job handle", ge=0, le=15)] = 12.0


class RunAnswer(Answer):
    """The result, or the handle of a job that will have it."""

    summary: str = Field(description="One sentence")
    ok: bool = Field(description="Whether the run passed; false while it is not done")
    status: str = Field(
        description="PASSED, PASSED_UNTIMED, STATIC_REJECT, COMPILE_ERROR, INCORRECT_NUMERICAL, HANG, ..., or the job's state while there is none"
    )
    candidate_id: str = Field(description="The candidate")
    run_id: str | None = Field(default=None, description="Id (r_...) of the run record")
    evidence: str | None = Field(
        default=None, description="Strongest evidence: measured (on a GPU), simulated (numbers), or predicted (time)"
    )
    job: jobs.JobView | None = Field(default=None, description="The job, while it is not done or if it failed")
    compile: dict[str, Any] | None = Field(
        default=None, description="What the compiler reports: registers, spills, shared memory, assembler remarks, with schedule lines"
    )
    numerics: dict[str, Any] | None = Field(default=None, description="Errors against the float64 oracle, and where they are")
    timing: dict[str, Any] | None = Field(default=None, description="Measured times; absent without a GPU")
    prediction: dict[str, Any] | None = Field(default=None, description="Predicted time and what bounds it; never a measurement")
    findings: list[Any] = Field(default_factory=list, description="Anything else that was noticed")
    resource: str | None = Field(default=None, description="Where the whole record is: manifest, generated CUDA, logs")
    next_actions: list[str] = Field(description="What to do next")


async def run(state: ServerState, arguments: RunArguments, report: Reporter) -> RunAnswer:
    """Queue the work and wait for it, at most `wait_s`. A call that is cancelled while it waits takes the job that it made with it."""
    job, made = await anyio.to_thread.run_sync(_submit, state, arguments)
    try:
        job = await jobs.wait_for(state, job, arguments.wait_s, report)
    except anyio.get_cancelled_exc_class():
        if made:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(state.dispatcher.cancel, job.id)
        raise
    return await anyio.to_thread.run_sync(answer_for, state, job)


def _submit(state: ServerState, arguments: RunArguments) -> tuple[Job, bool]:
    from ..operations import evaluate, propose

    candidate = propose.get_candidate(state.workspace, arguments.candidate_id)
    return evaluate.submit(
        state.workspace,
        candidate,
        task=arguments.task or None,
        target=arguments.target or None,
        device=arguments.device,
        options={"timing": arguments.timing, **({"shapes": arguments.shapes} if arguments.shapes else {})},
        again=arguments.again,
    )


def answer_for(state: ServerState, job: Job) -> RunAnswer:
    """What a job has to say: its run's evidence once it is done."""
    run = state.workspace.store.runs.get(job.run) if job.run else None
    if run is None:
        return _unfinished(state, job)
    body = run.body
    sections = clip_all(record.brief(body), 400, 12)
    return RunAnswer(
        summary=clip(f"{run.id} {run.status} ({run.evidence}): {body.get('summary', '')}", 300),
        ok=run.status.startswith("PASSED"),
        status=run.status,
        candidate_id=run.candidate,
        run_id=run.id,
        evidence=run.evidence,
        findings=clip_all(body.get("findings", []), 600, 8),
        resource=f"cake://run/{run.id}",
        next_actions=_next(run),
        **sections,
    )


def _unfinished(state: ServerState, job: Job) -> RunAnswer:
    shown = jobs.view(state, job)
    if job.alive:
        where = f" at {job.stage}" if job.stage else ""
        summary = f"{job.id} is {job.state}{where}, {job.progress:.0%}; ask again in {shown.poll_after_s:g} s"
        actions = [f"get_job {job.id} with wait_s=15", f"cancel_job {job.id} if it is not wanted any more"]
    elif job.state == "cancelled":
        summary, actions = f"{job.id} was cancelled", [f"compile_and_run {job.candidate} to start anew"]
    else:
        summary = clip(f"{job.id} {job.state}: {job.error or 'no reason is known'} (this says nothing about the kernel)", 300)
        actions = [f"compile_and_run {job.candidate} again; if it fails again, run `cake doctor`"]
    return RunAnswer(summary=summary, ok=False, status=job.state, candidate_id=job.candidate, job=shown, next_actions=actions)


def _next(run: Run) -> list[str]:
    if not run.status.startswith("PASSED"):
        first = run.body.get("first_action")
        return [f"diagnose {run.id} to see what went wrong and where the fix belongs", *([first] if first else [])]
    actions = [f"diagnose {run.id} to see what bounds it"]
    if run.evidence != "measured":
        actions.append("time it on a machine with a GPU: what is said about its speed is a prediction")
    return actions


def text(answer: RunAnswer) -> str:
    """The text twin."""
    lines = [answer.summary]
    lines += record.lines({name: section for name in _SECTIONS if (section := getattr(answer, name))})
    return shapes.with_next(lines, answer.next_actions)


TOOL = ToolSpec(
    name="compile_and_run",
    title="Compile and run a kernel",
    description=(
        "Lowers a candidate to CUDA, compiles it for the exact target, and judges it on a task: numbers against a float64 oracle on several "
        "input distributions, then time with a cold L2. On a machine without a GPU the compiler still runs, the simulator gives the numbers "
        "and the cost model the time; every figure is labelled measured, simulated or predicted.\n"
        "The work runs in its own process: a hang or a crash costs one candidate. It is a job: the call answers within wait_s with the "
        "result, or with job_id; then call get_job. The same evaluation is never done twice unless again=true.\n"
        "Wrong numbers, a compile error or a hang are normal answers with ok=false and a status. Next: diagnose with the run id."
    ),
    arguments=RunArguments,
    answer=RunAnswer,
    text=text,
    run=run,
    read_only=False,
    idempotent=True,
)

"""`cancel_job`: end a job and everything it started."""

from typing import Annotated

import anyio.to_thread
from pydantic import Field

from ..binding import Answer, Arguments, Reporter, ToolSpec
from ..state import ServerState
from . import jobs, shapes


class CancelJobArguments(Arguments):
    """Which job."""

    job_id: Annotated[str, Field(description="Job id (j_...)", max_length=80)]


class CancelJobAnswer(Answer):
    """The job as it is now."""

    summary: str = Field(description="One sentence")
    ok: bool = Field(description="Whether the job is cancelled now")
    job: jobs.JobView = Field(description="The job")
    next_actions: list[str] = Field(description="What to do next")


async def run(state: ServerState, arguments: CancelJobArguments, report: Reporter) -> CancelJobAnswer:
    """Cancel it, unless it has ended."""
    return await anyio.to_thread.run_sync(_cancel, state, arguments.job_id)


def _cancel(state: ServerState, identifier: str) -> CancelJobAnswer:
    before = jobs.get_job(state, identifier)
    job = state.dispatcher.cancel(identifier)
    assert job is not None
    ok = job.state == "cancelled"
    summary = f"{job.id} is cancelled, its process has ended" if ok and before.alive else f"{job.id} had ended already: {before.state}"
    actions = [] if ok else [f"get_job {job.id}"]
    return CancelJobAnswer(summary=summary, ok=ok, job=jobs.view(state, job), next_actions=actions)


def text(answer: CancelJobAnswer) -> str:
    """The text twin."""
    return shapes.with_next([answer.summary], answer.next_actions)


TOOL = ToolSpec(
    name="cancel_job",
    title="Cancel a job",
    description="Ends a job of compile_and_run and every process it started. A job that has ended already is left as it is.",
    arguments=CancelJobArguments,
    answer=CancelJobAnswer,
    text=text,
    run=run,
    read_only=False,
    idempotent=True,
    destructive=True,
)

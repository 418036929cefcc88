"""`get_job`: how far a job is, and its result once it is done."""

from typing import Annotated

import anyio.to_thread
from pydantic import Field

from ..binding import Arguments, Reporter, ToolSpec
from ..state import ServerState
from . import jobs
from .compile_and_run import RunAnswer, answer_for, text


class GetJobArguments(Arguments):
    """Which job, and how long to wait for its end."""

    job_id: Annotated[str, Field(description="Job id (j_...)", max_length=80)]
    wait_s: Annotated[float, Field(description="Seconds to wait for its end", ge=0, le=15)] = 10.0


async def run(state: ServerState, arguments: GetJobArguments, report: Reporter) -> RunAnswer:
    """Wait for the job; a call that is cancelled leaves it alone."""
    job = await anyio.to_thread.run_sync(jobs.get_job, state, arguments.job_id)
    job = await jobs.wait_for(state, job, arguments.wait_s, report)
    return await anyio.to_thread.run_sync(answer_for, state, job)


TOOL = ToolSpec(
    name="get_job",
    title="Wait for a job",
    description=(
        "Says how far a job of compile_and_run is, waiting up to wait_s for its end, and gives its result once it is done: the same answer "
        "as compile_and_run. Jobs outlive the server and the client that started them."
    ),
    arguments=GetJobArguments,
    answer=RunAnswer,
    text=text,
    run=run,
    read_only=True,
    idempotent=True,
)

"""How tools show a job, and how they wait for one."""

import anyio
import anyio.to_thread
from pydantic import Field

from ..binding import Reporter
from ..operations.misuse import unknown
from ..state import ServerState
from ..store import Job
from . import shapes

_POLL_SECONDS = 0.15
_REPORT_SECONDS = 5.0
_GUESS_SECONDS = 30.0


class JobView(shapes.Part):
    """A job as a client sees it."""

    job_id: str = Field(description="Id (j_...) for get_job and cancel_job")
    state: str = Field(description="queued, running, done, failed, cancelled or lost")
    stage: str | None = Field(default=None, description="What it is doing")
    progress: float = Field(description="From 0 to 1")
    message: str | None = Field(default=None, description="Details of the stage")
    queue_position: int | None = Field(default=None, description="Jobs to be served before it")
    run_id: str | None = Field(default=None, description="The run, once done")
    error: str | None = Field(default=None, description="Why it failed")
    elapsed_s: float | None = Field(default=None, description="Seconds since it started")
    poll_after_s: float | None = Field(default=None, description="When asking again is worth while, from how long earlier jobs took")


def get_job(state: ServerState, identifier: str) -> Job:
    """The job. Raises `Misuse` if there is none."""
    job = state.workspace.store.jobs.get(identifier)
    if job is None:
        known = [j.id for j in state.workspace.store.jobs.in_state("queued", "running", "done", "failed", "cancelled", "lost")]
        raise unknown("job", identifier, known[-200:], then="job ids come from `compile_and_run`")
    return job


def view(state: ServerState, job: Job) -> JobView:
    """The job as a client sees it."""
    import time

    store = state.workspace.store
    expected = sorted(store.runs.wall_seconds()) if job.alive else []
    typical = expected[len(expected) // 2] if expected else _GUESS_SECONDS
    ahead = store.jobs.ahead_of(job) if job.state == "queued" else None
    elapsed = (job.finished or time.time()) - job.started if job.started else None
    remaining = typical * (1 + (ahead or 0)) - (elapsed or 0.0)
    return JobView(
        job_id=job.id,
        state=job.state,
        stage=job.stage,
        progress=round(job.progress, 3),
        message=job.message,
        queue_position=ahead,
        run_id=job.run,
        error=job.error,
        elapsed_s=round(elapsed, 2) if elapsed is not None else None,
        poll_after_s=round(min(30.0, max(1.0, remaining)), 1) if job.alive else None,
    )


async def wait_for(state: ServerState, job: Job, seconds: float, report: Reporter) -> Job:
    """The job after it has ended or `seconds` have passed; every new stage is reported, and at least every few seconds."""
    state.dispatcher.wake()
    deadline = anyio.current_time() + seconds
    told: tuple[object, ...] = ()
    told_at = -_REPORT_SECONDS
    while True:
        now = anyio.current_time()
        if (job.state, job.stage) != told or now - told_at >= _REPORT_SECONDS:
            told, told_at = (job.state, job.stage), now
            await report(job.progress, f"{job.id} {job.state}" + (f": {job.stage}" if job.stage else ""))
        if not job.alive or now >= deadline:
            return job
        await anyio.sleep(min(_POLL_SECONDS, max(0.01, deadline - now)))
        fresh = await anyio.to_thread.run_sync(state.workspace.store.jobs.get, job.id)
        assert fresh is not None
        job = fresh

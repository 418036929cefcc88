"""The process of one job: `python -m cake_mcp.jobs.child WORKSPACE JOB`.

It owns the job from the moment it has taken it over: its heart beats in the store, and it ends itself, with everything it started, when the
job was cancelled or took too long. Its answer is written in one transaction, by it, so no server needs to be alive for that.
"""

import logging
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from types import FrameType

from .. import workspace as workspaces
from ..store import StoreBusy
from ..store.jobs import HEARTBEAT_SECONDS
from . import processes

_UNTOLD = 200  # characters of an unexpected exception's text that go into the job's row


def main(root: Path, identifier: str) -> int:
    """Do the job; 0 if it is done, 1 if it failed, 2 if it is not ours to do."""
    signal.signal(signal.SIGTERM, _leave)
    workspace = workspaces.load(root)
    store = workspace.store
    owner = processes.identity()
    if not store.jobs.begin(identifier, owner, os.getpid()):
        return 2
    job = store.jobs.get(identifier)
    assert job is not None
    deadline = time.monotonic() + workspace.settings.job_seconds
    threading.Thread(target=_heart, args=(workspace, identifier, owner, deadline), daemon=True).start()
    try:
        from ..operations import evaluate

        evaluate.perform(workspace, job, owner)
    except Exception as error:  # a process boundary: whatever went wrong is this job's failure and nothing else's
        traceback.print_exc()
        store.jobs.finish(identifier, owner, error=f"{type(error).__name__}: {error}"[:_UNTOLD])
        return 1
    return 0


def _heart(workspace: workspaces.Workspace, identifier: str, owner: str, deadline: float) -> None:
    while True:
        time.sleep(HEARTBEAT_SECONDS)
        if time.monotonic() > deadline:
            seconds = workspace.settings.job_seconds
            workspace.store.jobs.finish(identifier, owner, error=f"took longer than job_seconds = {seconds:g} and was ended")
            break
        try:
            if not workspace.store.jobs.beat(identifier, owner):
                break
        except StoreBusy:
            continue
    job = workspace.store.jobs.get(identifier)
    if job is not None and job.state == "done":
        return
    for pid in processes.descendants(os.getpid()):
        processes.kill(pid)
    os._exit(3)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))

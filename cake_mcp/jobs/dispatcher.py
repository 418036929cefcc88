"""Starts queued jobs as child processes, looks after them, and adopts those whose process is gone."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import processes

if TYPE_CHECKING:
    from ..store import Job
    from ..workspace import Workspace

_BUSY_SECONDS = 0.1
_IDLE_SECONDS = 2.0

log = logging.getLogger(__name__)


class Dispatcher:
    """One thread of a server. It dies with the server; the jobs it started do not."""

    def __init__(self, workspace: "Workspace") -> None:
        self._workspace = workspace
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Begin to look after the queue; does nothing the second time."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="cake-jobs", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """Look at the queue now."""
        self.start()
        self._wake.set()

    def stop(self) -> None:
        """Stop looking after the queue. Running jobs go on; another server, or the next one, finds their results."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=2)

    def cancel(self, identifier: str) -> "Job | None":
        """Cancel a job and end its process with everything that it started; the job as it is then, None if there is none."""
        before = self._workspace.store.jobs.get(identifier)
        job = self._workspace.store.jobs.cancel(identifier)
        if before is not None and before.state == "running" and before.owner is not None:
            child = self._children.get(identifier)
            owner = before.owner
            if before.pid is None and child is not None:  # started, but it has not taken its job over yet
                with contextlib.suppress(ProcessLookupError):
                    owner = processes.identity(child.pid)
            if owner != processes.identity():
                processes.end_tree(owner)
        return job

    def _loop(self) -> None:
        while not self._stopping.is_set():
            try:
                busy = self._turn()
            except Exception:  # the thread is a process boundary of its own: one bad turn must not end all later jobs
                log.exception("looking after jobs")
                busy = False
            self._wake.wait(_BUSY_SECONDS if busy else _IDLE_SECONDS)
            self._wake.clear()

    def _turn(self) -> bool:
        jobs = self._workspace.store.jobs
        for identifier, child in list(self._children.items()):
            if child.poll() is not None:
                del self._children[identifier]
        if jobs.in_state("running"):
            for job in jobs.adopt(processes.gone):
                log.warning("job %s: its process is gone, it is %s now", job.id, job.state)
        while (job := self._claim()) is not None:
            self._spawn(job)
        return bool(self._children) or bool(jobs.in_state("queued"))

    def _claim(self) -> "Job | None":
        jobs = self._workspace.store.jobs
        if not jobs.in_state("queued"):
            return None
        return jobs.claim(processes.identity(), self._workspace.settings.parallel_jobs)

    def _spawn(self, job: "Job") -> None:
        from cake_backend.executors.local import SINGLE_THREADED

        command = [sys.executable, "-m", "cake_mcp.jobs.child", str(self._workspace.root), job.id]
        with (self._workspace.folder("jobs") / f"{job.id}.log").open("ab") as log_file:
            # Its own session, so that it outlives the server; no standard input, which is the client's wire.
            self._children[job.id] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log_file, stderr=subprocess.STDOUT, start_new_session=True,
                env={**SINGLE_THREADED, **os.environ},
            )  # fmt: skip


def wait(get: Callable[[], "Job | None"], seconds: float, changed: Callable[["Job"], None]) -> "Job | None":
    """Poll a job until it has ended or `seconds` have passed; `changed` is told of every new stage. For callers without an event loop."""
    deadline = time.monotonic() + seconds
    seen: tuple[object, ...] = ()
    while True:
        job = get()
        if job is None:
            return None
        if (job.state, job.stage, job.progress) != seen:
            seen = (job.state, job.stage, job.progress)
            changed(job)
        if not job.alive or time.monotonic() >= deadline:
            return job
        time.sleep(0.1)

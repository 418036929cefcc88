"""Runs a request folder in a worker process on this machine, under the GPU's lease and a time limit."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cake_backend.executors.lease import gpu_lease
from cake_backend.executors.process import Ended, run_group

# One thread for NumPy's matrix products: several children at once would fight for the cores otherwise.
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
WORKER = "cake_backend.judge.worker"
KEPT = ("PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "LANG", "LC_ALL", "PYTHONHOME")


@dataclass(frozen=True, slots=True)
class WorkerRun:
    """How the worker's process ended, and how long the lease was waited for (seconds)."""

    ended: Ended
    queue_s: float


def worker_environment() -> dict[str, str]:
    """A small environment: this very copy of the packages, the search paths, and nothing that belongs to the server."""
    root = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**SINGLE_THREADED, **kept, "PYTHONPATH": root + (os.pathsep + inherited if inherited else ""), "CUDA_CACHE_DISABLE": "1"}


def run_worker(
    folder: Path,
    *,
    device: int = 0,
    timeout: float,
    lease_timeout: float | None = None,
    cancel: threading.Event | None = None,
    tick: Callable[[], None] | None = None,
    waiting: Callable[[float], None] | None = None,
    python: str | None = None,
) -> WorkerRun:
    """Run one request; returns however the worker ended. Raises LeaseTimeout while the device stays busy."""
    with gpu_lease(device, timeout=lease_timeout, cancel=cancel, waiting=waiting) as queued:
        ended = run_group(
            [python or sys.executable, "-m", WORKER, str(folder)],
            timeout=timeout,
            env=worker_environment(),
            cwd=folder,
            cancel=cancel,
            tick=tick,
        )
    return WorkerRun(ended, queued)

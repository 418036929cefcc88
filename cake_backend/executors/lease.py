"""One process at a time on a GPU: a lock file per device, released by the kernel when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path


class LeaseTimeout(TimeoutError):
    """The device stayed busy for longer than the caller would wait."""


def lease_folder() -> Path:
    """`$CAKE_LEASES`, else a folder shared by all users of this machine."""
    return Path(os.environ.get("CAKE_LEASES") or Path(tempfile.gettempdir()) / "cake-gpu-leases")


@contextlib.contextmanager
def gpu_lease(
    device: int | str,
    *,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
    waiting: Callable[[float], None] | None = None,
    folder: Path | None = None,
) -> Iterator[float]:
    """Hold the device exclusively; yields the seconds spent waiting.

    `waiting` is called now and then with the time waited so far. Raises LeaseTimeout when `timeout` seconds are over or
    `cancel` is set.
    """
    place = folder or lease_folder()
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"gpu-{device}.lock"
    start = time.monotonic()
    with path.open("a") as f:
        with contextlib.suppress(OSError):  # made by another user: it is already open to all
            path.chmod(0o666)
        while True:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - start
                if (timeout is not None and waited >= timeout) or (cancel is not None and cancel.is_set()):
                    raise LeaseTimeout(f"device {device} is busy (waited {waited:.1f} s)") from None
                if waiting is not None:
                    waiting(waited)
                time.sleep(0.05)
        try:
            yield time.monotonic() - start
        finally:
            fcntl.flock(f, fcntl.LOCK_UN)

"""Child processes that cannot hang, outlive or flood their parent."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

OUTPUT_LIMIT = 16 * 1024
GRACE = 5.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit status (negative for a signal), whether its time ran out or it was cancelled, and the end of its output."""

    returncode: int | None
    timed_out: bool
    cancelled: bool
    seconds: float
    output_tail: str

    @property
    def signal_name(self) -> str | None:
        """The signal that killed the child, if one did."""
        if self.returncode is None or self.returncode >= 0:
            return None
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:
            return f"signal {-self.returncode}"

    def describe(self) -> str:
        """A few words for a message."""
        if self.timed_out:
            return f"no answer within {self.seconds:.1f} s"
        if self.cancelled:
            return "cancelled"
        return self.signal_name or f"exit status {self.returncode}"


def run_group(
    command: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    cancel: threading.Event | None = None,
    tick: Callable[[], None] | None = None,
) -> Ended:
    """Run a command in a process group of its own; kill the whole group when `timeout` seconds are over or `cancel` is set.

    Output goes to a file, not to a pipe: a child that prints without end cannot block, and one that leaves a descendant
    holding the pipe cannot keep the parent waiting. `tick` is called about ten times a second (for progress).
    """
    with tempfile.TemporaryFile() as sink:
        start = time.monotonic()
        child = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=env, cwd=cwd, start_new_session=True
        )
        timed_out = cancelled = False
        try:
            pause = 0.001
            while not _has_ended(child.pid):
                timed_out = time.monotonic() - start >= timeout
                cancelled = cancel is not None and cancel.is_set()
                if timed_out or cancelled:
                    break
                if tick is not None:
                    tick()
                time.sleep(pause)
                pause = min(pause * 1.5, 0.1)
        finally:
            kill_group(child)
        return Ended(child.returncode, timed_out, cancelled, time.monotonic() - start, _tail(sink))


def _has_ended(pid: int) -> bool:
    """Whether the child is a zombie; it is not reaped here, so that its group number stays ours until the group is killed."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a child's group: the child first if it still runs, then descendants that outlived it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the group is empty: all of it has ended already
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in a driver call: it must not keep the parent as well
        child.wait(timeout=GRACE)


def _tail(sink: BinaryIO) -> str:
    sink.seek(0, os.SEEK_END)
    size = sink.tell()
    sink.seek(max(0, size - OUTPUT_LIMIT))
    return sink.read().decode(errors="replace")

"""Processes on this machine: an identity that is not reused, whether one has ended, and ending one with all it started."""

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

_GRACE_SECONDS = 2.0


def identity(pid: int | None = None) -> str:
    """Host, process id and start time: unlike a bare process id, never true of two processes.

    Raises `ProcessLookupError` if there is no such process.
    """
    pid = os.getpid() if pid is None else pid
    start = _start_time(pid)
    if start is None:
        raise ProcessLookupError(pid)
    return f"{socket.gethostname()}:{pid}:{start}"


def gone(owner: str) -> bool | None:
    """Whether the process of that identity has ended; None if it lives on another machine, where this one cannot look."""
    host, pid, start = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return None
    return _start_time(int(pid)) != start


def _start_time(pid: int) -> str | None:
    """Start time in clock ticks since boot, from /proc; None if the process has ended (a zombie has)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def descendants(pid: int) -> list[int]:
    """Every process started by `pid`, directly or not, children first, whatever session or group it has moved to."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text("ascii", "replace").rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    pending = list(children.get(pid, ()))
    while pending:
        found.append(pending[0])
        pending += children.get(pending.pop(0), ())
    return found


def end_tree(owner: str, *, grace: float = _GRACE_SECONDS) -> None:
    """End the process of that identity and everything it started: first by asking, after `grace` seconds without.

    Does nothing if it has ended, lives on another machine, or the number stands for another process by now.
    """
    if gone(owner) is not False:
        return
    pid = int(owner.rsplit(":", 2)[1])
    family = [(member, _start_time(member)) for member in (pid, *descendants(pid))]
    _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and gone(owner) is False:
        time.sleep(0.02)
    family += [(member, _start_time(member)) for member in descendants(pid)]
    for member, start in family:
        if start is not None and _start_time(member) == start:
            kill(member)


def kill(pid: int) -> None:
    """End a process at once, if it is there."""
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)

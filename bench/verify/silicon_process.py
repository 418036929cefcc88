"""One child process under watch: its lines with time limits, and its end, whatever the GPU does to it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

MAX_OUTPUT = 1 << 20
REAP_SECONDS = 10.0


@dataclass(frozen=True)
class Limits:
    """Seconds: until the child is `ready` (a context is made meanwhile, many at once), and of silence after that."""

    start: float = 40.0
    silence: float = 3.0


def watch(command: Sequence[str], limits: Limits, deadline: float, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a child to its end and say what came of it.

    The result is the child's `end` line; or `hang` where it went silent after `ready` (it is killed), `fault` where it died by itself then,
    `infra` where it never got ready, `unfinished` at the `deadline` (a `time.monotonic` value). `stuck` is true where even a killed child
    does not end: then the GPU's driver holds it.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, start_new_session=True)
        try:
            found = _follow(child, limits, deadline)
        finally:
            stuck = not end(child)
        if found["outcome"] in ("infra", "fault") and "code" in found:
            found["detail"] = f"{found['detail']}; {_tail(errors)}".strip("; ")
    return {**found, "stuck": stuck, "seconds": round(time.monotonic() - started, 2)}


def _follow(child: subprocess.Popen[bytes], limits: Limits, deadline: float) -> dict[str, Any]:
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    ready, last, total, buffer = False, time.monotonic(), 0, b""
    at: dict[str, Any] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            limit = min(deadline, last + (limits.silence if ready else limits.start))
            if now >= limit:
                if now >= deadline:
                    return {**at, "outcome": "unfinished", "detail": "the time for all mutants was over"}
                if not ready:
                    return {"outcome": "infra", "detail": f"not ready after {limits.start:g} s"}
                return {**at, "outcome": "hang", "detail": f"killed after {limits.silence:g} s", "killed": True}
            if not selector.select(limit - now):
                continue
            data = child.stdout.read(1 << 16)
            if data is None:
                continue
            total += len(data)
            if not data or total > MAX_OUTPUT:
                code = _code(child) if not data else None
                what = "more output than any run gives" if data else f"ended with {code} and no result"
                return {**at, "outcome": "fault" if ready and not data else "infra", "detail": what, "code": code}
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                event = _event(line)
                if event is None:
                    continue
                last = time.monotonic()
                if event["event"] == "ready":
                    ready, at["gpu"] = True, event.get("gpu", "")
                elif event["event"] == "run":
                    at |= {k: event[k] for k in ("run", "setting", "seed", "mode") if k in event}
                elif event["event"] == "end" and isinstance(event.get("outcome"), str):
                    return {**at, **{k: v for k, v in event.items() if k != "event"}}


def _event(line: bytes) -> dict[str, Any] | None:
    """An event of the protocol; None for anything else that got printed."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _code(child: subprocess.Popen[bytes]) -> int | None:
    try:
        return child.wait(1.0)
    except subprocess.TimeoutExpired:
        return None


def end(child: subprocess.Popen[bytes]) -> bool:
    """Kill the child's process group and reap it; False where it cannot be reaped."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    if child.stdout is not None:
        child.stdout.close()
    try:
        child.wait(REAP_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _tail(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - 300))
    return errors.read().decode("utf-8", "replace").strip().replace("\n", " | ")

"""What parent and worker exchange: files in one folder, never objects, never text that is taken for a verdict.

The parent writes `request.json`, `kernel.cubin` and raw input files. The worker writes raw output bytes, and one JSON line per
finished step to `events.jsonl`. The parent believes only lines and files that have exactly the expected form; standard output is
kept as a log and never read for results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

VERSION = 1
REQUEST = "request.json"
CUBIN = "kernel.cubin"
EVENTS = "events.jsonl"
HANG = "hang.bin"
FIRST, LAST, TIMED = ".out", ".last", ".timed"
"""Ends of the names of output files: the first run's; the last run's and the last timed one's where bits may differ."""
CYCLE_WORDS = 6
"""Words a CTA that a twin counts into: start (two words), end (two), the SM's number, one to align."""
MAX_LINE = 4 * 2**20
MAX_LINES = 100_000

# Event name -> fields that must be there, with their types.
EVENT_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "device": {"info": dict},
    "module": {"kernels": dict},
    "run": {"case": str, "repeat": int, "digests": dict, "bands": dict, "modified": list, "seconds": (int, float)},
    "timing": {"case": str, "eager": list, "graph": list, "digests": list, "telemetry": list},
    "turn": {"contestant": str, "stage": str},
    "tried": {"case": str, "contestant": str, "digests": dict, "bands": dict, "modified": list},
    "raced": {"contestant": str, "eager": list, "graph": list, "digests": dict, "telemetry": list},
    "counters": {"case": str, "entry": str, "words": int, "values": list},
    "cycles": {
        "case": str, "launch": int, "entry": str, "blocks": int, "sms": int, "slowest_block": int, "median_block": int, "slowest_sm": int,
    },
    "fault": {"case": (str, type(None)), "stage": str, "kind": str, "error": str},
    "done": {},
}


class ProtocolError(ValueError):
    """The worker wrote something that no honest worker writes."""


def write_request(folder: Path, request: Mapping[str, Any], *cubins: bytes, twins: Sequence[bytes] = ()) -> None:
    """Lay out a request folder for a worker; launches name their cubin by its number. Counting twins are loaded only behind everything else."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [module_name(number) for number in range(len(cubins))]
    counting = [f"twin-{number}.cubin" for number in range(len(twins))]
    for name, cubin in zip((*names, *counting), (*cubins, *twins), strict=True):
        (folder / name).write_bytes(cubin)
    (folder / REQUEST).write_text(json.dumps({"version": VERSION, "modules": names, "twins": counting, **request}))


def module_name(number: int) -> str:
    """File name of the cubin of that number: `kernel.cubin`, `kernel-1.cubin`, .."""
    return f"kernel-{number}.cubin" if number else CUBIN


def read_events(folder: Path) -> list[dict[str, Any]]:
    """All complete, well-formed events in order.

    A last line without its end is dropped (the worker died while writing it); anything else that is not an event raises
    ProtocolError.
    """
    path = folder / EVENTS
    if not path.exists():
        return []
    events = []
    with path.open("rb") as f:
        for number, line in enumerate(f, 1):
            if not line.endswith(b"\n"):
                break
            if number > MAX_LINES or len(line) > MAX_LINE:
                raise ProtocolError(f"line {number} of the worker's events is beyond the limits")
            events.append(_event(number, line))
    return events


def _event(number: int, line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        raise ProtocolError(f"line {number} of the worker's events is not JSON") from None
    if not isinstance(event, dict) or event.get("event") not in EVENT_FIELDS:
        raise ProtocolError(f"line {number} of the worker's events is no event")
    for name, kind in EVENT_FIELDS[event["event"]].items():
        value = event.get(name)
        if name not in event or not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise ProtocolError(f"line {number}: event `{event['event']}` has no proper `{name}`")
    return event


def numbers(values: list[Any], *, least: float = 0.0) -> list[float]:
    """A list of finite numbers of at least `least`, or ProtocolError."""
    import math

    out = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < least:
            raise ProtocolError(f"{value!r} is not a number that a clock gives")
        out.append(float(value))
    return out

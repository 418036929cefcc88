"""A predicted timeline as a trace that browsers show: one track a member, one for the tensor core."""

from __future__ import annotations

from typing import Any

from cake_backend.cost.grid import own_tiles
from cake_backend.cost.predict import Setting
from cake_backend.cost.reading import Step, read

_MOST = 6_000
_TENSOR_TRACK = 1_000


def timeline(s: Setting, ghz: float | None = None) -> dict[str, Any]:
    """Chrome trace JSON of the SM that sets the time, without the iterations that repeat. Times are in microseconds at `ghz` (capped clock).

    Raises `Unreadable` where the launch cannot be read. Everything in it is predicted.
    """
    constants = s.calibration.constants()
    scale = 1e-3 / (ghz or constants.ghz_capped)
    trace: list[Step] = []
    reading = read(s.subject, constants, s.args, lambda name: own_tiles(s.grid, s.subject.program, name), blocks=s.blocks, evidence=s.evidence(),
                   extents=s.extents, data=s.data, trace=trace)  # fmt: skip
    events: list[dict[str, Any]] = [{"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": f"predicted: {s.subject.program.name} on {s.device.name}"}}]
    for number, m in enumerate(reading.members):
        events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": number + 1, "args": {"name": f"{m.role} {m.index}"}})
    events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": _TENSOR_TRACK, "args": {"name": "tensor core"}})
    for step in trace[:_MOST]:
        events += _events(s, step, scale)
    return {"displayTimeUnit": "ns", "traceEvents": events, "otherData": {"label": "predicted", "left_out": max(0, len(trace) - _MOST)}}


def _events(s: Setting, step: Step, scale: float) -> list[dict[str, Any]]:
    if step.member < 0:
        return [_bar(f"member {step.op}", "mma", step.start, step.end, _TENSOR_TRACK, {}, scale)]
    op = s.subject.demands[step.op].op
    what = str(op.attrs.get("barrier") or op.name)
    args = {"line": op.span.line, "operation": op.name}
    out = []
    if step.waited > 0:
        out.append(_bar(f"wait {what}", "wait", step.start, step.start + step.waited, step.member + 1, args, scale))
        busy = step.start + step.waited
        if step.end > busy:
            out.append(_bar(op.name, "busy", busy, step.end, step.member + 1, args, scale))
    elif step.end > step.start:
        out.append(_bar(op.name, "busy", step.start, step.end, step.member + 1, args, scale))
    return out


def _bar(name: str, kind: str, start: float, end: float, track: int, args: dict[str, Any], scale: float) -> dict[str, Any]:
    return {"name": name, "cat": kind, "ph": "X", "ts": start * scale, "dur": (end - start) * scale, "pid": 1, "tid": track, "args": args}

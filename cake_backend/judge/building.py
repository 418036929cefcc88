"""From a program to a cubin: lowering, compilation, machine code, and every remark brought back to a line of the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cake_backend.judge.status import Status
from cake_backend.manifest import Manifest
from cake_backend.toolchain import Build, Remark, compile_cuda
from cake_backend.toolchain.gate import sass_remarks
from cake_backend.toolchain.sass import read_sass

if TYPE_CHECKING:
    from cake_ir.program import Program


@dataclass(slots=True)
class Built:
    """What lowering and compiling gave; `status` says what kept it from a cubin."""

    text: str = ""
    manifest: Manifest | None = None
    build: Build | None = None
    report: dict[str, Any] = field(default_factory=dict)
    status: Status | None = None
    summary: str = ""


def build_program(program: Program, source: str, *, timeout: float, report: bool = False) -> Built:
    """Lower and compile; never raises for what the schedule holds. With `report` every wait can leave a hang record."""
    from cake_backend.cuda.lower import lower
    from cake_ir.fault import FaultError

    out = Built()
    try:
        lowered = lower(program, source=source, report=report)
    except FaultError as error:
        span = error.fault.span
        out.status, out.summary = Status.NOT_LOWERED, f"line {span.line}: {error.fault.message}"
        out.report = {"label": "not lowered", "fault": {"message": error.fault.message, "span": span.to_json(), "help": error.fault.help}}
        return out
    out.text, out.manifest = lowered.text, lowered.manifest
    build = out.build = compile_cuda(lowered.text, program.target, timeout=timeout)
    remarks = list(build.remarks)
    sass = read_sass(build.cubin) if build.cubin is not None else None
    if sass is not None:
        remarks += sass_remarks(sass)
    out.report = {
        "label": "compiled",
        "ok": build.ok,
        "status": build.status,
        "target": build.target,
        "compiler": build.compiler,
        "seconds": round(build.seconds, 3),
        "cached": build.cached,
        "resources": build.resources.to_json(),
        "entries": {name: entry.to_json() for name, entry in build.entries.items()},
        "remarks": [remark_json(r, lowered.source_map) for r in remarks],
        "serialised": any(r.serialises for r in remarks),
        "smem": max((launch.smem for launch in out.manifest.launches), default=0),
        "cubin_bytes": len(build.cubin) if build.cubin else None,
        "machine_code": {name: _code(report) for name, report in sass.items()} if sass is not None else None,
    }
    if not build.ok:
        first = next((r for r in build.remarks if r.severity == "error"), None)
        unavailable = build.status in ("unavailable", "timeout", "crash")
        out.status = Status.INFRA_ERROR if unavailable else Status.COMPILE_ERROR
        line = schedule_line(first.generated_line, lowered.source_map) if first else None
        out.summary = (f"line {line}: " if line else "") + (first.text if first else build.status)
    return out


def _code(report: Any) -> dict[str, Any]:
    """The part of a machine-code report that fits an answer: totals and the hot loop."""
    hot = report.hot_loop()
    return {
        "instructions": report.instructions,
        "largest_register": report.largest_register,
        "counts": report.counts,
        "hot_loop": hot.to_json() if hot else None,
    }


def schedule_line(generated: int | None, source_map: Sequence[Any]) -> int | None:
    """The schedule's line behind a generated one (both from 1): that line's own, or that of the nearest line above that has one."""
    if generated is None:
        return None
    for i in range(min(generated, len(source_map)) - 1, -1, -1):
        if source_map[i] is not None:
            return int(source_map[i].line)
    return None


def remark_json(remark: Remark, source_map: Sequence[Any]) -> dict[str, Any]:
    """A remark with its schedule line."""
    return {**remark.to_json(), "line": schedule_line(remark.generated_line, source_map)}

"""From a program to a cubin: lowering, compilation, machine code, and every remark brought back to a line of the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cake_backend.judge.routine import Routine, merged
from cake_backend.judge.status import Status
from cake_backend.manifest import Manifest
from cake_backend.toolchain import Build, Remark, compile_cuda
from cake_backend.toolchain.gate import MISSING_MMA, missing_mmas, sass_remarks
from cake_backend.toolchain.sass import read_sass

if TYPE_CHECKING:
    from cake_backend.cuda.lower import Lowered
    from cake_ir.program import Program


@dataclass(slots=True)
class Built:
    """What lowering and compiling gave; `status` says what kept it from a cubin. A plan has `more` texts and builds than the first."""

    text: str = ""
    manifest: Manifest | None = None
    build: Build | None = None
    report: dict[str, Any] = field(default_factory=dict)
    status: Status | None = None
    summary: str = ""
    more: list[tuple[str, Build]] = field(default_factory=list)

    @property
    def files(self) -> list[tuple[str, Build]]:
        """Text and build of every module, in the order of their numbers."""
        return [] if self.build is None else [(self.text, self.build), *self.more]

    @property
    def cubins(self) -> tuple[bytes, ...]:
        """The cubins, all of them or none; none of a build that was refused."""
        if self.status is not None:
            return ()
        made = tuple(build.cubin for _, build in self.files if build.cubin is not None)
        return made if len(made) == len(self.files) else ()


def build_program(program: Program, source: str, *, timeout: float, report: bool = False) -> Built:
    """Lower and compile one schedule; never raises for what it holds. With `report` every wait can leave a hang record."""
    return build_routine(Routine.of(program), source, timeout=timeout, report=report)


def build_routine(routine: Routine, source: str, *, timeout: float, report: bool = False) -> Built:
    """Lower and compile every schedule that is launched, each as a module of its own, at the same time."""
    from cake_backend.cuda.lower import lower
    from cake_ir.fault import FaultError

    out = Built()
    try:
        lowered = [lower(program, source=source, report=report) for program in routine.programs]
        manifest = merged(routine, [one.manifest for one in lowered])
    except FaultError as error:
        span = error.fault.span
        out.status, out.summary = Status.NOT_LOWERED, f"line {span.line}: {error.fault.message}"
        out.report = {"label": "not lowered", "fault": {"message": error.fault.message, "span": span.to_json(), "help": error.fault.help}}
        return out
    with ThreadPoolExecutor(len(lowered)) as pool:  # the compiler runs in child processes: threads only wait
        builds = list(pool.map(lambda one: compile_cuda(one.text, routine.target, timeout=timeout), lowered))
    out.text, out.manifest, out.build = lowered[0].text, manifest, builds[0]
    out.more = [(one.text, build) for one, build in zip(lowered[1:], builds[1:], strict=True)]
    reports = [_report(program, one, build) for program, one, build in zip(routine.programs, lowered, builds, strict=True)]
    out.report = reports[0] if len(reports) == 1 else _together(reports)
    out.report["smem"] = max((launch.smem for launch in manifest.launches), default=0)
    failed = next((i for i, build in enumerate(builds) if not build.ok), None)
    if failed is not None:
        build = builds[failed]
        first = next((r for r in build.remarks if r.severity == "error"), None)
        unavailable = build.status in ("unavailable", "timeout", "crash")
        out.status = Status.INFRA_ERROR if unavailable else Status.COMPILE_ERROR
        line = remark_json(first, lowered[failed].source_map, routine.programs[failed])["line"] if first else None
        out.summary = (f"line {line}: " if line else "") + (first.text if first else build.status)
    elif dropped := next((r for r in out.report["remarks"] if r["code"] == MISSING_MMA), None):
        out.status, out.summary = Status.COMPILE_ERROR, f"line {dropped['line']}: {dropped['text']}"
    return out


def _report(program: Program, lowered: Lowered, build: Build) -> dict[str, Any]:
    """The record's section for one module; its `ok` is false where the machine code is not what the schedule asks for."""
    from cake_backend.cuda.mma_count import asked_mmas

    remarks = list(build.remarks)
    sass = read_sass(build.cubin) if build.cubin is not None else None
    if sass is not None:
        remarks += sass_remarks(sass)
        remarks += [r for one in sass.values() for r in missing_mmas(one, asked_mmas(program))]
    dropped = any(r.code == MISSING_MMA for r in remarks)
    return {
        "label": "compiled",
        "ok": build.ok and not dropped,
        "status": "miscompiled" if dropped else build.status,
        "target": build.target,
        "compiler": build.compiler,
        "seconds": round(build.seconds, 3),
        "cached": build.cached,
        "resources": build.resources.to_json(),
        "entries": {name: entry.to_json() for name, entry in build.entries.items()},
        "remarks": [remark_json(r, lowered.source_map, program) for r in remarks],
        "serialised": any(r.serialises for r in remarks),
        "cubin_bytes": len(build.cubin) if build.cubin else None,
        "machine_code": {name: _code(report) for name, report in sass.items()} if sass is not None else None,
    }


def _together(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One section for the modules of a plan: the worst of what matters for each, and every remark."""
    out = dict(reports[0])
    out["ok"] = all(r["ok"] for r in reports)
    out["status"] = next((r["status"] for r in reports if not r["ok"]), out["status"])
    out["seconds"] = round(max(r["seconds"] for r in reports), 3)
    out["cached"] = all(r["cached"] for r in reports)
    out["resources"] = {name: max((r["resources"].get(name) or 0) for r in reports) for name in out["resources"]}
    out["remarks"] = [remark for r in reports for remark in r["remarks"]]
    out["serialised"] = any(r["serialised"] for r in reports)
    out["cubin_bytes"] = sum(r["cubin_bytes"] or 0 for r in reports)
    for section in ("entries", "machine_code"):
        named: dict[str, Any] = {}
        for number, r in enumerate(reports):  # one schedule with two sets of tunables has one entry name
            for name, value in (r[section] or {}).items():
                named[name if name not in named else f"{name}#{number}"] = value
        out[section] = named
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


def remark_json(remark: Remark, source_map: Sequence[Any], program: Program) -> dict[str, Any]:
    """A remark with its schedule line: its own, that of the generated line, or that of the declaration it is about."""
    from cake_backend.judge.remark_lines import declared_line

    line = remark.line or schedule_line(remark.generated_line, source_map) or declared_line(remark.code, program)
    return {**remark.to_json(), "line": line}

"""`evaluate`: one text on one task, as far as this machine can take it, every figure labelled with where it comes from.

verify -> lower -> compile -> run on a GPU, or simulate and predict where there is none. Labels: `measured` (a GPU ran it), `simulated`
(NumPy ran it), `compiled` (the compiler said it), `predicted` (the cost model said it). A missing device is normal.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cake_backend.executors.lease import LeaseTimeout
from cake_backend.judge.admission import admit
from cake_backend.judge.building import Built, build_routine
from cake_backend.judge.cycles import counted, twin_of
from cake_backend.judge.devices import Found, find_devices, runs_on, target_of
from cake_backend.judge.domain import Domain, assumptions, describe, suffix
from cake_backend.judge.plan import Options, Plan, make_plan, wanted_shapes
from cake_backend.judge.protocol import module_name
from cake_backend.judge.routine import Routine
from cake_backend.judge.session import Candidate, Further, Session, run_session
from cake_backend.judge.source import read_source
from cake_backend.judge.status import Status
from cake_backend.judge.verdict import judge_session
from cake_backend.task import Task
from cake_backend.toolchain import nvrtc_version

Progress = Callable[..., None]

_NEXT = {
    Status.PASSED: "diagnose the run to see what bounds it",
    Status.PASSED_UNTIMED: "time it on a machine with a GPU of its target",
    Status.STATIC_REJECT: "apply the fix of the first diagnostic, or edit the line it names",
    Status.UNDECIDED: "declare what the note asks for (extents, a target)",
    Status.NOT_LOWERED: "use a form that this build lowers, or have it verified and simulated only",
    Status.COMPILE_ERROR: "read the compiler's message; Cake accepted what the compiler refused, so report it too",
    Status.INCORRECT_NUMERICAL: "look at where the failures lie: whole tiles, a tail, or one lane",
    Status.NONDETERMINISTIC: "look for a missing wait, fence or sync on the output's way",
    Status.OUT_OF_BOUNDS: "check the coordinates of the stores of the named output",
    Status.INPUT_MODIFIED: "a store goes to an input: check its tensor and coordinates",
    Status.HANG: "find the role whose arrival the stuck barrier misses",
    Status.TIMEOUT: "make the loop bounds finite, or ask for a longer time limit",
    Status.RUNTIME_ERROR: "the driver names the fault; look at the accesses of the case that was running",
    Status.TIMING_UNTRUSTED: "time it again on a quiet machine",
}


def evaluate(
    text: str,
    *,
    params: Mapping[str, Any] | None = None,
    task: Task,
    target: str | None = None,
    device: str | None = None,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    workdir: Path | str | None = None,
    cancel: threading.Event | None = None,
    schedule: str | None = None,
) -> dict[str, Any]:
    """The record of one evaluation (a JSON value); what the text does wrong is a status in it, never an exception.

    device: None (a GPU that can run the target, else the simulator), "gpu" or "gpu:N" (one of those or nothing), "simulate", or the
    name of a device to predict for. `progress(stage, fraction)` is called now and then. With `workdir` the generated text, manifest, cubin,
    log and record are kept there. Raises ValueError for options or devices that are none.
    """
    wanted = Options.of(options)
    run = _Run(text, dict(params or {}), task, target, device, wanted, progress or _silent, cancel, schedule)
    record = run.perform()
    if workdir is not None:
        keep_files(Path(workdir), record, run.built)
    return record


def _silent(stage: str, fraction: float = 0.0, message: str = "") -> None:
    return None


class _Run:
    """One evaluation in progress: a record that is filled from stage to stage."""

    def __init__(
        self, text: str, params: dict[str, Any], task: Task, target: str | None, device: str | None, options: Options,
        progress: Progress, cancel: threading.Event | None, schedule: str | None,
    ) -> None:  # fmt: skip
        self.text, self.params, self.task, self.target, self.device = text, params, task, target, device
        self.options, self.progress, self.cancel, self.schedule = options, progress, cancel, schedule
        self.built: Built | None = None
        self.domain = Domain(task)
        self.no_cycles = "not asked for"
        self.start = time.monotonic()
        self.record: dict[str, Any] = {
            "status": Status.INFRA_ERROR.value,
            "summary": "",
            "evidence": "none",
            "task": task.name,
            "target": target,
            "device": None,
            "nvrtc": nvrtc_version(),
            "text_hash": hashlib.sha256(text.encode()).hexdigest(),
            "params": params,
            "findings": [],
            "cost": {},
        }

    def end(self, status: Status, summary: str) -> dict[str, Any]:
        """Close the record."""
        if status.good:
            summary += suffix(self.record.get("domain", {}), self.options.timing)
        self.record |= {"status": status.value, "summary": summary, "first_action": _NEXT.get(status, "")}
        self.record["cost"]["wall_s"] = round(time.monotonic() - self.start, 3)
        return self.record

    def perform(self) -> dict[str, Any]:
        """All stages in order; each may end the record."""
        found, ordinal, only_gpu = self._choose_device()
        if only_gpu and ordinal is None:
            return self.end(Status.SKIPPED, f"a GPU was asked for and there is none: {found.reason or 'not that many'}")
        gpu = found.devices[ordinal] if ordinal is not None else None
        self.progress("verify", 0.02)
        source = read_source(
            self.text, self.params, target=self.target, task=self.task, prefer=target_of(gpu) if gpu else None,
            schedule=self.schedule, allow_undecided=self.options.allow_undecided,
        )  # fmt: skip
        self.record["verify"] = source.verdict
        self.record["findings"] += source.findings
        if source.status is not None or source.routine is None:
            return self.end(source.status or Status.UNDECIDED, source.summary)
        routine = source.routine
        self.record["target"] = routine.target
        admission = admit(self.task)
        if not admission.ok:
            self.record["findings"] += [{"kind": "task", "text": fault} for fault in admission.faults[:8]]
            return self.end(Status.WORKLOAD_REJECTED, admission.faults[0])
        self.progress("compile", 0.1)
        self.built = built = build_routine(routine, self.text, timeout=self.options.compile_timeout)
        self.record["compile"] = built.report
        for remark in built.report.get("remarks", ()):
            if remark["severity"] in ("warning", "error"):
                self.record["findings"].append({"kind": "assembler", "code": remark["code"], "line": remark["line"], "text": remark["text"]})
        if built.status is not None and built.status is not Status.NOT_LOWERED:
            return self.end(built.status, built.summary)
        taken = wanted_shapes(self.task, routine.tunables, self.options)
        self.domain = Domain(self.task, built.manifest, () if built.manifest else assumptions(routine))
        self.record["domain"] = describe(self.domain, taken, routine.tunables)
        if taken and not self.record["domain"]["covered"]:
            first = self.domain.excluded(taken)[0]
            self.record["findings"].append({"kind": "bind", "text": first.reason, "line": first.line})
            return self.end(Status.RUNTIME_ERROR, f"no shape of the task can be launched; `{first.shape.name}`: {first.sentence()}")
        self._predict(routine, gpu["name"] if gpu else None)
        on_gpu = gpu is not None and built.build is not None and built.status is None
        if on_gpu and gpu is not None and not runs_on(routine.target, gpu):
            if only_gpu:
                return self.end(Status.SKIPPED, f"{gpu['name']} ({target_of(gpu)}) cannot run {routine.target}")
            self.record["findings"].append({"kind": "device", "text": f"{gpu['name']} cannot run {routine.target}: simulated instead"})
            on_gpu = False
        if on_gpu and ordinal is not None:
            return self._on_gpu(routine, ordinal, gpu or {})
        if built.status is Status.NOT_LOWERED and only_gpu:
            return self.end(built.status, built.summary)
        return self._simulated(routine)

    def _choose_device(self) -> tuple[Found, int | None, bool]:
        """The devices here, the one to use (None: simulate), and whether anything but a GPU is refused."""
        if self.device == "simulate":
            return Found((), "the simulator was asked for"), None, False
        if self.device in (None, "auto", "gpu") or (self.device or "").startswith("gpu:"):
            found = find_devices()
            number = (self.device or "").partition(":")[2] or "0"
            if not number.isdecimal():
                raise ValueError(f"device `{self.device}` is none")
            ordinal = int(number) if int(number) < len(found.devices) else None
            return found, ordinal, (self.device or "").startswith("gpu")
        from cake_ir.targets.devices import DEVICES

        if self.device not in DEVICES:
            raise ValueError(f"unknown device `{self.device}`; auto, gpu, gpu:N, simulate or one of {', '.join(DEVICES)}")
        self.record["device"] = self.device
        return Found((), f"prediction for {self.device}"), None, False

    def _on_gpu(self, routine: Routine, ordinal: int, gpu: dict[str, Any]) -> dict[str, Any]:
        assert self.built is not None
        candidate = candidate_of(self.built, routine)
        if self.options.timing and self.options.cycles:
            made = twin_of(self.built, routine.target, timeout=self.options.compile_timeout)
            candidate = candidate if isinstance(made, str) else replace(candidate, twin=made)
            self.no_cycles = made if isinstance(made, str) else ""
        seal = hashlib.sha256(b"".join(candidate.cubins) + candidate.manifest.dumps().encode()).hexdigest()
        plan = make_plan(self.task, candidate.params, self.options, seal=seal, covers=self.domain.covers)
        self.record |= {"device": gpu["name"], "gpu": gpu, "driver": gpu["driver"], "plan": plan.to_json(), "evidence": "measured"}
        if not plan.cases:
            return self.end(Status.SKIPPED, "the candidate's parameters leave no shape of the task")
        try:
            session = run_session(
                candidate, self.task, plan, self.options, device=ordinal, cancel=self.cancel,
                progress=lambda stage, part: self.progress(stage, 0.15 + 0.7 * part),
            )  # fmt: skip
        except LeaseTimeout as error:
            return self.end(Status.INFRA_ERROR, str(error))
        self.progress("check", 0.9)
        verdict = judge_session(session, candidate, self.task)
        if Status(verdict["status"]) in (Status.RUNTIME_ERROR, Status.TIMEOUT) and session.run is not None:
            self.progress("report", 0.92)
            verdict = self._with_hang_report(routine, ordinal, session, verdict)
        status = Status(verdict["status"])
        cases = verdict["numerics"]
        wrong = [c for c in cases if c["status"] != Status.PASSED]
        self.record["numerics"] = {"label": "measured", "ok": bool(cases) and not wrong, "cases": cases, "wrong": len(wrong)}
        if verdict["timing"]:
            for row in verdict["timing"]:
                row["cycles"] = self._cycles(session, row["shape"])
            self.record["timing"] = {"label": "measured", **_headline(verdict["timing"]), "shapes": verdict["timing"]}
        if "hang" in verdict:
            self.record["hang"] = verdict["hang"]
        self.record["findings"] += verdict["faults"]
        if session.run is not None:
            self.record["cost"] |= {"gpu_s": round(session.run.ended.seconds, 3), "queue_s": round(session.run.queue_s, 3)}
        counters = session.of("counters")
        if counters:
            self.record["counters"] = counters
        return self.end(status, verdict["summary"])

    def _cycles(self, session: Session, shape: str) -> dict[str, Any]:
        """SM cycles of a timed shape's launches, or why there are none; an absent figure is never 0."""
        case = next((c.id for c in session.plan.cases if c.timed and c.shape.name == shape), None)
        launches = counted(session.of("cycles", case)) if case is not None else []
        fault = next((str(e["error"]) for e in session.of("fault") if e["stage"] == "cycles"), "")
        return {"launches": launches} if launches else {"absent": self.no_cycles or fault or "the counting twin gave nothing"}

    def _with_hang_report(self, routine: Routine, ordinal: int, session: Session, verdict: dict[str, Any]) -> dict[str, Any]:
        """The verdict of a run that trapped or did not end, after the case in question ran once more with waits that report.

        Waits of the ordinary build only trap, which is what costs nothing; so the report takes a build of its own.
        """
        case = session.unfinished()
        trapped = any("CUDA_ERROR_LAUNCH_FAILED" in f["text"] for f in verdict["faults"])
        if case is None or not (trapped or verdict["status"] == Status.TIMEOUT):
            return verdict
        built = build_routine(routine, self.text, timeout=self.options.compile_timeout, report=True)
        if not built.cubins:
            return verdict
        again = Plan((replace(case, timed=False, repeats=1),), session.plan.poison, session.plan.seal)
        candidate = candidate_of(built, routine)
        limited = replace(self.options, run_timeout=min(60.0, self.options.run_timeout))
        second = judge_session(
            run_session(candidate, self.task, again, limited, device=ordinal, cancel=self.cancel), candidate, self.task
        )
        if second["status"] != Status.HANG:
            self.record["findings"].append({"kind": "hang", "text": f"run again with reporting waits: {second['summary']}"})
            return verdict
        return {**verdict, "status": second["status"], "summary": second["summary"], "hang": second["hang"]}

    def _simulated(self, routine: Routine) -> dict[str, Any]:
        from cake_backend.judge.simulation import simulate_cases

        self.progress("simulate", 0.2)
        outcome = simulate_cases(
            routine, self.task, self.options, cancel=self.cancel, domain=self.domain,
            progress=lambda part: self.progress("simulate", 0.2 + 0.7 * part),
        )  # fmt: skip
        self.record["evidence"] = "simulated" if outcome.cases else self.record["evidence"]
        self.record["numerics"] = outcome.to_json()
        self.record["findings"] += outcome.findings
        compiled = self.built is not None and self.built.status is None
        if outcome.status is Status.PASSED_UNTIMED and not compiled and self.built is not None:
            return self.end(Status.NOT_LOWERED, f"simulated right; {self.built.summary}")
        return self.end(outcome.status, outcome.summary)

    def _predict(self, routine: Routine, gpu_name: str | None) -> None:
        """The cost model's opinion per benchmark shape, where it has one."""
        from cake_backend.judge.prediction import predict_shapes

        name = self.device if self.device and self.record["device"] == self.device else None
        report = self.built.report if self.built else {}
        try:
            prediction, finding = predict_shapes(routine, self.task, report, device=name, gpu_name=gpu_name)
        except Exception as error:  # an opinion that fails must not cost the measurement that follows
            prediction, finding = None, f"the cost model failed: {type(error).__name__}: {error}"[:300]
        if prediction:
            self.record["prediction"] = prediction
        if finding:
            self.record["findings"].append({"kind": "prediction", "text": finding})


def candidate_of(built: Built, routine: Routine) -> Candidate:
    """What the worker runs, with the author's names in the order in which lowering numbers them."""
    assert built.manifest is not None and built.cubins
    named = [(cubin, tuple(p.roles), tuple(p.barriers)) for cubin, p in zip(built.cubins, routine.programs, strict=True)]
    (cubin, roles, barriers), *others = named
    more = tuple(Further(*other) for other in others)
    return Candidate(cubin, built.manifest, dict(routine.tunables), roles, barriers, more, tuple(routine.unordered()))


def _headline(shapes: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of the largest timed shape, for a one-line answer."""
    last = max(shapes, key=lambda s: s.get("seconds") or 0.0)
    return {k: last[k] for k in ("shape", "seconds", "tflops", "gbytes_per_s", "floor_over_time") if k in last}


def keep_files(folder: Path, record: Mapping[str, Any], built: Built | None) -> None:
    """Write text, manifest, cubin and log of every module, and the record, to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if built is not None:
        if built.text and built.build is None:
            (folder / "kernel.cu").write_text(built.text)
        if built.manifest is not None:
            (folder / "manifest.json").write_text(built.manifest.dumps())
        for number, (text, build) in enumerate(built.files):
            name = Path(module_name(number))
            (folder / name.with_suffix(".cu")).write_text(text)
            (folder / name.with_suffix(".log").name.replace("kernel", "compile")).write_text(build.log)
            if build.cubin is not None:
                (folder / name).write_bytes(build.cubin)
    (folder / "record.json").write_text(json.dumps(record, indent=1, default=str))

"""From raw evidence to one status: the order of the questions matters, and every later answer can only lower a candidate."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake_backend.judge import hangs
from cake_backend.judge.check import Reference, sample_rows
from cake_backend.judge.device.buffers import poison_pattern
from cake_backend.judge.floors import below_floor, floor
from cake_backend.judge.numerics import count_poison
from cake_backend.judge.plan import Case
from cake_backend.judge.protocol import LAST, TIMED, ProtocolError, numbers
from cake_backend.judge.session import Candidate, Session, case_inputs, output_arrays
from cake_backend.judge.statistics import summarise, untrusted
from cake_backend.judge.status import Status
from cake_backend.manifest import DTYPE_BYTES
from cake_backend.task import Task

FAULTS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "the kernel touched an address that is no memory of its own",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "an access is not aligned to its size",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "the device refused an instruction",
    "CUDA_ERROR_LAUNCH_FAILED": "the kernel trapped or faulted",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "the kernel ran into the driver's time limit",
    "CUDA_ERROR_INVALID_VALUE": "the driver refused the launch's arguments",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the launch needs more registers or shared memory than there are",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the cubin is for another target than this device",
}


def judge_session(session: Session, candidate: Candidate, task: Task) -> dict[str, Any]:
    """The verdict as a JSON value: `status`, `summary`, `numerics`, `timing`, `device`, `faults`."""
    out: dict[str, Any] = {"status": None, "summary": "", "numerics": [], "timing": [], "device": None, "faults": []}
    early = _before_data(session, candidate, out)
    if session.of("device"):
        out["device"] = session.of("device")[0]["info"]
    if session.protocol_error is None:
        for case in session.plan.cases:
            if case.id in session.outputs:
                _judge_case(session, candidate, task, case, out)
    worst = next((c for c in out["numerics"] if c["status"] != Status.PASSED), None)
    if worst is not None and (early is None or early[0] in (Status.HANG, Status.TIMEOUT, Status.RUNTIME_ERROR)):
        # wrong numbers seen before the fault are the better clue, but the fault decides
        out["faults"].append({"kind": "numerics", "text": worst["summary"]})
    if early is not None:
        out["status"], out["summary"] = early
    elif worst is not None:
        out["status"], out["summary"] = worst["status"], worst["summary"]
    else:
        _judge_times(session, candidate, task, out)
    out["status"] = Status(out["status"]).value
    for case in out["numerics"]:
        case["status"] = Status(case["status"]).value
    return out


def _before_data(session: Session, candidate: Candidate, out: dict[str, Any]) -> tuple[Status, str] | None:
    """What ended the run before all data was there, or None when the worker finished."""
    if session.bind_error is not None and session.bind_case is not None:
        where = "a held-out shape" if session.bind_case.heldout else f"shape `{session.bind_case.shape.name}`"
        out["faults"].append({"kind": "bind", "text": str(session.bind_error), "line": session.bind_error.line})
        return Status.RUNTIME_ERROR, f"{where} cannot be launched: {session.bind_error}"
    if session.protocol_error is not None:
        return Status.INFRA_ERROR, f"the worker's answer is not one: {session.protocol_error}"
    if session.run is None or session.run.ended.cancelled:
        return Status.CANCELLED, "stopped on request"
    if session.of("done"):  # whatever ended the process afterwards was no part of the judgement
        if missing := [c.id for c in session.plan.cases if c.id not in session.outputs]:
            return Status.INFRA_ERROR, f"{len(missing)} cases have no result although the worker finished"
        return None
    report = hangs.summarise(session.hang, *candidate.names(session.hang_launch))
    faults = session.of("fault")
    if session.hang:
        out["hang"] = report
        launches = candidate.manifest.launches
        where = f" in launch {session.hang_launch + 1}, `{launches[session.hang_launch].entry}`" if len(launches) > 1 else ""
        return Status.HANG, f"a wait did not end{where}: {report['sentence']}"
    if faults:
        return _fault(faults[-1], session, out)
    ended = session.run.ended
    if ended.timed_out:
        return Status.TIMEOUT, f"no answer within {ended.seconds:.0f} s and no wait was reported{_last_case(session)}"
    out["faults"].append({"kind": "process", "text": ended.describe(), "log": ended.output_tail[-2000:]})
    if ended.returncode is not None and ended.returncode < 0:
        return Status.INFRA_ERROR, f"the worker died with {ended.signal_name}{_last_case(session)}"
    return Status.INFRA_ERROR, f"the worker ended early with {ended.describe()}"


def _last_case(session: Session) -> str:
    case = session.unfinished()
    return "" if case is None else " in a held-out case" if case.heldout else f" in shape `{case.shape.name}`"


def _fault(fault: dict[str, Any], session: Session, out: dict[str, Any]) -> tuple[Status, str]:
    text = str(fault["error"])
    code = next((c for c in FAULTS if c in text), None)
    place = _last_case(session)
    out["faults"].append({"kind": fault["kind"], "stage": fault["stage"], "text": text})
    if fault["kind"] == "refused":
        return Status.RUNTIME_ERROR, f"the device cannot launch it: {text}{place}"
    if code == "CUDA_ERROR_NO_BINARY_FOR_GPU":
        return Status.SKIPPED, FAULTS[code]
    if fault["kind"] == "driver" and fault["stage"] in ("run", "collect", "time", "load", "prepare") and "no driver" not in text:
        told = f": {FAULTS[code]}" if code else ""
        return Status.RUNTIME_ERROR, f"{code or text}{told}{place}"
    return Status.INFRA_ERROR, f"{fault['stage']}: {text}"


def _judge_case(session: Session, candidate: Candidate, task: Task, case: Case, out: dict[str, Any]) -> None:
    runs = session.of("run", case.id)
    status, summary = Status.PASSED, ""
    where = "a held-out shape" if case.heldout else f"`{case.shape.name}` with `{case.distribution}` data"
    bands = {name: b for r in runs for name, b in r["bands"].items()}
    modified = sorted({n for r in runs for n in r["modified"]})
    digests = [r["digests"] for r in runs]
    verdicts: dict[str, Any] = {}
    if bands:
        status, summary = Status.OUT_OF_BOUNDS, f"written outside {_named(bands)} in {where}"
    elif modified:
        status, summary = Status.INPUT_MODIFIED, f"input {_named(modified)} was changed in {where}"
    outputs = output_arrays(task, case, session.outputs[case.id])
    inputs = case_inputs(task, case)
    rows = sample_rows(task, case.shape.axes, np.random.default_rng(case.seed))
    try:
        reference = Reference(task, case.shape.axes, inputs, rows)
        verdicts = reference.compare(outputs, task.distribution(case.distribution))
    except ValueError as error:
        status, summary = Status.INVALID_REFERENCE, str(error)
    else:
        for end, when in ((LAST, "the last run"), (TIMED, "a timed run")):
            if raw := session.later.get((case.id, end)):
                again = reference.compare(output_arrays(task, case, raw), task.distribution(case.distribution))
                verdicts |= {f"{n} of {when}": v for n, v in again.items() if not v.ok}
    pattern = poison_pattern(session.plan.poison)
    unwritten = {}
    for name, raw in session.outputs[case.id].items():
        if task.tensors[name].mode == "out":
            count = count_poison(raw, pattern, DTYPE_BYTES[task.tensors[name].dtype])
            unwritten.update({name: count} if count else {})
    for name, verdict in verdicts.items():
        if status is Status.PASSED and not verdict.ok:
            status = Status.INCORRECT_NUMERICAL
            told = f", {unwritten[name]} never written" if name in unwritten else ""
            detail = "" if case.heldout else f": {verdict.reason}{told}"
            summary = f"output `{name}` is wrong for {where}{detail}"
    differ = any(d != digests[0] for d in digests[1:])
    if status is Status.PASSED and differ and not candidate.unordered:
        names = [n for n in digests[0] if any(d.get(n) != digests[0][n] for d in digests[1:])]
        status, summary = Status.NONDETERMINISTIC, f"output {_named(names)} differs between two runs on {where}"
    entry: dict[str, Any] = {"case": case.id, "status": status, "summary": summary, "heldout": case.heldout}
    if not case.heldout:  # of held-out cases only the outcome is told
        entry |= {
            "shape": case.shape.name, "axes": dict(case.shape.axes), "distribution": case.distribution, "seed": case.seed,
            "rows_checked": "all" if rows is None else len(rows), "unwritten": unwritten, "bands": bands,
            "outputs": {n: v.to_json() for n, v in verdicts.items()}, "runs": len(runs),
        }  # fmt: skip
        if candidate.unordered:
            entry["unordered"] = {"lines": list(candidate.unordered), "bits_differ": differ}
    out["numerics"].append(entry)


def _named(names: Any) -> str:
    return ", ".join(f"`{n}`" for n in names)


def _judge_times(session: Session, candidate: Candidate, task: Task, out: dict[str, Any]) -> None:
    """Statistics of the timed cases, with floor and trust; sets the status of a candidate that was right everywhere."""
    status, summary = Status.PASSED_UNTIMED, f"right on all {len(session.plan.cases)} cases"
    for case in session.plan.cases:
        for event in session.of("timing", case.id):
            try:
                eager, graph = numbers(event["eager"]), numbers(event["graph"])
            except ProtocolError as error:
                out["status"], out["summary"] = Status.INFRA_ERROR, str(error)
                return
            work = task.work(case.shape.axes)
            limit = floor(work, task.unit, out["device"])
            entry = {
                "shape": case.shape.name, "axes": dict(case.shape.axes), "eager": summarise(eager), "graph": summarise(graph),
                "floor": limit.to_json(), "telemetry": event["telemetry"], "flush_bytes": event.get("flush_bytes"),
            }  # fmt: skip
            best = entry["graph"] if graph else entry["eager"]
            entry["seconds"] = best.get("median_s")
            if entry["seconds"]:
                entry["tflops"] = work["flops"] / entry["seconds"] / 1e12
                entry["gbytes_per_s"] = (work["bytes_read"] + work["bytes_written"]) / entry["seconds"] / 1e9
                entry["floor_over_time"] = limit.seconds / entry["seconds"]
            runs = session.of("run", case.id)
            wanted = {n: d for n, d in runs[0]["digests"].items() if n in (event["digests"][0] if event["digests"] else {})}
            entry["untrusted"] = untrusted(entry["eager"]) or (untrusted(entry["graph"]) if graph else None)
            out["timing"].append(entry)
            if not candidate.unordered and any(d != wanted for d in event["digests"]):
                status, summary = Status.NONDETERMINISTIC, f"a timed run of `{case.shape.name}` gave other bits than the checked one"
            elif any(below_floor(x, limit) for x in (entry["seconds"] or 0.0, entry["eager"].get("median_s", 0.0)) if x):
                status, summary = Status.PHYSICS_FLOOR, f"`{case.shape.name}` is faster than the chip can be ({limit.bound} bound)"
            elif entry["untrusted"] is not None:
                status, summary = Status.TIMING_UNTRUSTED, f"right everywhere, but `{case.shape.name}`: {entry['untrusted']}"
            elif status is Status.PASSED_UNTIMED:
                status = Status.PASSED
            if status not in (Status.PASSED, Status.PASSED_UNTIMED, Status.TIMING_UNTRUSTED):
                break
    out["status"], out["summary"] = status, summary

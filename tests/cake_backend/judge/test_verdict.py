"""From evidence to status: sessions built from real bytes, each with one thing wrong."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cake_kernels
from cake_backend.executors.local import WorkerRun
from cake_backend.executors.process import Ended
from cake_backend.judge.admission import as_outputs
from cake_backend.judge.device.buffers import poison_pattern
from cake_backend.judge.floors import below_floor, floor
from cake_backend.judge.plan import Options, make_plan
from cake_backend.judge.session import Candidate, Session, case_inputs
from cake_backend.judge.verdict import judge_session
from cake_backend.manifest import Manifest

RMS = cake_kernels.tasks()["rmsnorm"]
SIM = [s for s in RMS.shapes if s.kind == "sim"]
TASK = replace(RMS, shapes=(*SIM, replace(RMS.shape("edge_133_rows"), kind="bench")))
H200 = {
    "index": 0, "name": "NVIDIA H200", "capability": [9, 0], "sms": 132, "clock_khz": 1980000, "memory_clock_khz": 3201000,
    "memory_bus_bits": 6144, "l2_bytes": 60 << 20, "driver": 13000,
}  # fmt: skip
CANDIDATE = Candidate(b"", Manifest("r", "sm_90a", ()))


def digest(raw: dict[str, bytes]) -> dict[str, str]:
    return {n: hashlib.sha256(b).hexdigest() for n, b in raw.items()}


def session(seconds: float = 20e-6, **options: Any) -> Session:
    plan = make_plan(TASK, {}, Options(heldout=1, **options), seal="x")
    events: list[dict[str, Any]] = [{"event": "device", "info": H200}, {"event": "module", "kernels": {}}]
    outputs = {}
    for case in plan.cases:
        inputs = case_inputs(TASK, case)
        made = as_outputs(TASK, case.shape.axes, TASK.oracle(inputs, case.shape.axes, None))
        raw = {n: a.tobytes() for n, a in made.items()}
        outputs[case.id] = raw
        for repeat in range(2):
            events.append(
                {"event": "run", "case": case.id, "repeat": repeat, "digests": digest(raw), "bands": {}, "modified": [], "seconds": 0.1}
            )
        if case.timed:
            times = [seconds * (1 + 0.01 * (i % 3)) for i in range(24)]
            events.append(
                {"event": "timing", "case": case.id, "eager": times, "graph": times, "graph_calls": 30, "digests": [digest(raw)] * 3,
                 "telemetry": [{}], "flush_bytes": 1 << 27}
            )  # fmt: skip
    events.append({"event": "done"})
    run = WorkerRun(Ended(0, False, False, 1.0, ""), 0.0)
    return Session(plan, {c.id: {"tensors": {}} for c in plan.cases}, run, events, outputs)


GOOD = session()


def changed() -> Session:
    return copy.deepcopy(GOOD)


def judged(s: Session) -> dict[str, Any]:
    return judge_session(s, CANDIDATE, TASK)


def test_right_everywhere_and_timed_is_a_pass_with_figures() -> None:
    verdict = judged(GOOD)
    assert verdict["status"] == "PASSED" and len(verdict["numerics"]) == len(GOOD.plan.cases)
    (timed,) = verdict["timing"]
    assert timed["graph"]["rounds"] == 24 and timed["seconds"] == pytest.approx(20.2e-6, rel=0.02)
    assert 0 < timed["floor_over_time"] < 1 and timed["floor"]["bound"] == "memory"


def test_untimed_is_not_a_full_pass() -> None:
    assert judged(session(timing=False))["status"] == "PASSED_UNTIMED"


def test_wrong_numbers_name_the_case_and_unwritten_elements_are_counted() -> None:
    s = changed()
    case = s.plan.cases[1]
    raw = bytearray(s.outputs[case.id]["Y"])
    pattern = poison_pattern(s.plan.poison).to_bytes(4, "little")
    raw[:4096] = pattern * 1024
    s.outputs[case.id]["Y"] = bytes(raw)
    verdict = judged(s)
    assert verdict["status"] == "INCORRECT_NUMERICAL" and f"`{case.shape.name}`" in verdict["summary"]
    assert "2048 never written" in verdict["summary"]
    assert next(c for c in verdict["numerics"] if c["case"] == case.id)["unwritten"] == {"Y": 2048}


def test_a_held_out_failure_tells_only_that_it_failed() -> None:
    s = changed()
    case = next(c for c in s.plan.cases if c.heldout)
    s.outputs[case.id]["Y"] = bytes(len(s.outputs[case.id]["Y"]))
    verdict = judged(s)
    entry = next(c for c in verdict["numerics"] if c["case"] == case.id)
    assert verdict["status"] == "INCORRECT_NUMERICAL" and "held-out" in verdict["summary"]
    assert set(entry) == {"case", "status", "summary", "heldout"}
    assert str(case.shape.axes["ROWS"]) not in verdict["summary"]


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("bands", {"Y": {"behind": 2, "behind_distance": 0}}, "OUT_OF_BOUNDS"),
        ("modified", ["X"], "INPUT_MODIFIED"),
        ("digests", {"Y": "other"}, "NONDETERMINISTIC"),
    ],
)
def test_each_kind_of_evidence_has_its_status(field: str, value: Any, status: str) -> None:
    s = changed()
    run = [e for e in s.events if e["event"] == "run"][1]
    run[field] = value
    assert judged(s)["status"] == status


def test_out_of_bounds_is_told_before_wrong_numbers() -> None:
    s = changed()
    case = s.plan.cases[0]
    s.outputs[case.id]["Y"] = bytes(len(s.outputs[case.id]["Y"]))
    s.of("run", case.id)[0]["bands"] = {"Y": {"before": 4, "before_distance": 0}}
    assert judged(s)["status"] == "OUT_OF_BOUNDS"


def test_a_timed_run_with_other_bits_is_not_a_pass() -> None:
    s = changed()
    s.of("timing")[0]["digests"][1] = {"Y": "other"}
    assert judged(s)["status"] == "NONDETERMINISTIC"


def test_a_time_below_the_floor_is_no_time() -> None:
    assert judged(session(seconds=0.01e-6))["status"] == "PHYSICS_FLOOR"


def test_times_that_scatter_are_not_trusted() -> None:
    s = changed()
    s.of("timing")[0]["graph"] = [20e-6, 60e-6] * 12
    assert judged(s)["status"] == "TIMING_UNTRUSTED"


def test_times_that_are_no_numbers_are_an_infrastructure_error() -> None:
    s = changed()
    s.of("timing")[0]["graph"][3] = float("nan")
    assert judged(s)["status"] == "INFRA_ERROR"


@pytest.mark.parametrize(
    ("kind", "stage", "error", "status"),
    [
        ("driver", "run", "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS", "RUNTIME_ERROR"),
        ("driver", "run", "cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED", "RUNTIME_ERROR"),
        ("driver", "load", "cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU", "SKIPPED"),
        ("refused", "prepare", "no CTA of 1024 threads fits", "RUNTIME_ERROR"),
        ("memory", "prepare", "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", "INFRA_ERROR"),
        ("request", "prepare", "ValueError: x", "INFRA_ERROR"),
    ],
)
def test_faults_are_told_apart(kind: str, stage: str, error: str, status: str) -> None:
    s = changed()
    last = s.plan.cases[-1].id
    s.events = [e for e in s.events if e["event"] != "done" and e.get("case") != last]
    del s.outputs[last]
    s.events.append({"event": "fault", "case": last, "stage": stage, "kind": kind, "error": error})
    verdict = judged(s)
    assert verdict["status"] == status
    if status == "RUNTIME_ERROR":
        assert s.plan.cases[-1].shape.name in verdict["summary"]


def test_floors_use_the_devices_own_figures() -> None:
    gemm = cake_kernels.tasks()["gemm"]
    limit = floor(gemm.work({"M": 8192, "N": 8192, "K": 8192}), "bf16", H200)
    assert limit.bound == "compute" and limit.seconds == pytest.approx(2 * 8192**3 / (132 * 4096 * 1.98e9))
    assert not below_floor(1.6e-3, limit) and below_floor(0.9e-3, limit)
    small = floor(RMS.work({"ROWS": 16384, "D": 7168}), "f32", H200)
    assert small.bound == "memory" and 80e-6 < small.seconds < 110e-6


def test_sampled_rows_keep_the_ends_and_one_block() -> None:
    from cake_backend.judge.check import sample_rows

    gemm = cake_kernels.tasks()["gemm"]
    axes = {"M": 4096, "N": 4096, "K": 4096}
    rows = sample_rows(gemm, axes, np.random.default_rng(0))
    assert rows is not None and rows[0] == 0 and rows[-1] == 4095 and len(rows) <= 400
    runs = np.diff(rows)
    assert max(len(part) for part in "".join("1" if d == 1 else " " for d in runs).split()) >= 63
    assert sample_rows(gemm, {"M": 64, "N": 64, "K": 64}, np.random.default_rng(0)) is None

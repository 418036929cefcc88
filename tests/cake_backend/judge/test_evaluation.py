"""From text to record on a machine without a GPU: real gates, real compiler, real simulator, labelled figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cake_kernels
from cake_backend.judge import Status, evaluate
from cake_backend.judge.devices import find_devices
from cake_backend.judge.plan import Options
from cake_backend.judge.simulation import simulate_cases
from cake_ir.frontend import parse, specialise

TASKS = cake_kernels.tasks()
TEXTS = {(s.family, s.name): s.text for s in cake_kernels.schedules()}
RMS = TEXTS["rmsnorm", "hopper"]
KMEANS = TEXTS["kmeans_assign", "hopper"]
QUICK = {"policies": 1}


def judged(text: str, family: str = "rmsnorm", **more: Any) -> dict[str, Any]:
    return evaluate(text, task=TASKS[family], device=more.pop("device", "simulate"), options={**QUICK, **more.pop("options", {})}, **more)


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def test_a_right_schedule_is_simulated_compiled_and_every_figure_has_its_label(tmp_path: Path) -> None:
    stages: list[str] = []
    record = judged(RMS, params={"WARPS": 8, "CTAS": 4}, workdir=tmp_path, progress=lambda stage, part=0.0, text="": stages.append(stage))
    assert record["status"] == "PASSED_UNTIMED" and record["evidence"] == "simulated", record["summary"]
    assert record["numerics"]["label"] == "simulated" and record["compile"]["label"] == "compiled"
    assert record.get("timing") is None, "nothing was measured, so nothing is called a time"
    assert record["prediction"]["label"] == "predicted" and record["target"] == "sm_90a"
    assert {c["distribution"] for c in record["numerics"]["cases"]} == {d.name for d in TASKS["rmsnorm"].distributions}
    assert record["compile"]["resources"]["registers"] > 0 and record["compile"]["resources"]["spill_stores"] == 0
    assert stages[0] == "verify" and "compile" in stages and "simulate" in stages
    kept = {p.name for p in tmp_path.iterdir()}
    assert {"kernel.cu", "kernel.cubin", "manifest.json", "compile.log", "record.json"} <= kept
    assert json.loads((tmp_path / "record.json").read_text())["status"] == "PASSED_UNTIMED"
    json.dumps(record, allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("key", [("gemm", "hopper"), ("gemm", "ampere"), ("kmeans_assign", "hopper")], ids=lambda k: "-".join(k))
def test_the_corpus_is_right_in_the_simulator(key: tuple[str, str]) -> None:
    record = judged(TEXTS[key], key[0], target="sm_90a")
    assert record["status"] == "PASSED_UNTIMED", record["summary"]
    assert not record["compile"]["serialised"] and record["compile"]["remarks"] == []


def test_wrong_arithmetic_is_wrong_numbers_not_an_exception() -> None:
    record = judged(changed(RMS, "1.0 / D", "2.0 / D"))
    assert record["status"] == "INCORRECT_NUMERICAL" and record["evidence"] == "simulated"
    assert "output `Y` is wrong" in record["summary"] and not record["numerics"]["ok"]
    assert record["numerics"]["cases"][-1]["outputs"]["Y"]["failures"] > 1000


def test_a_missing_mask_is_found_on_ragged_shapes() -> None:
    line = next(x for x in KMEANS.splitlines() if "lm.where(lm.iota" in x)
    program = specialise(parse(KMEANS.replace(line + "\n", "")).schedules[0]).program
    assert program is not None
    outcome = simulate_cases(program, TASKS["kmeans_assign"], Options(policies=0))
    assert outcome.status is Status.INCORRECT_NUMERICAL and "`IDX`" in outcome.summary


def test_a_parameter_of_another_name_is_rejected_with_its_place_and_the_nearest_name() -> None:
    record = judged(RMS.replace("ROWS: LM.i32", "NROWS: LM.i32").replace('"ROWS"', '"NROWS"').replace("tiles=(ROWS,)", "tiles=(NROWS,)"))
    assert record["status"] == "STATIC_REJECT" and "unknown parameter `NROWS`" in record["summary"] and "nearest is `ROWS`" in record["summary"]
    found = [d for d in record["verify"]["diagnostics"] if d["code"] == "N070"]
    assert found and RMS.splitlines()[found[0]["span"]["line"] - 1].count("ROWS")
    assert "compile" not in record, "nothing was compiled"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "STATIC_REJECT"),
        ("import os\nos.system('true')\n", "STATIC_REJECT"),
        ("def f(:\n", "STATIC_REJECT"),
        ("x = 1\n" * 20000, "STATIC_REJECT"),
        (RMS.replace("lm.rsqrt", "lm.rsqrtt"), "STATIC_REJECT"),
    ],
)
def test_text_that_is_no_schedule_is_a_status(text: str, status: str) -> None:
    record = judged(text)
    assert record["status"] == status and record["verify"]["diagnostics"]
    assert record["first_action"]


def test_an_unknown_tunable_is_rejected() -> None:
    record = judged(RMS, params={"WARP": 8})
    assert record["status"] == "STATIC_REJECT" and "WARP" in json.dumps(record["verify"])


def test_parameters_that_leave_no_shape_are_told_and_a_shape_of_the_domain_is_drawn_where_there_is_one() -> None:
    record = judged(RMS, params={"D": 6144})
    assert record["status"] == "PASSED_UNTIMED" and {c["axes"]["D"] for c in record["numerics"]["cases"]} == {6144}
    record = judged(RMS, params={"D": 16384})
    assert record["status"] == "UNDECIDED" and "no small shape" in record["summary"]


@pytest.mark.skipif(bool(find_devices().devices), reason="this machine has a GPU")
def test_without_a_gpu_auto_simulates_and_gpu_is_skipped() -> None:
    assert judged(RMS, device=None)["evidence"] == "simulated"
    record = judged(RMS, device="gpu")
    assert record["status"] == "SKIPPED" and "none" in record["summary"] and not Status(record["status"]).blames_candidate


def test_a_named_board_is_predicted_for() -> None:
    record = judged(RMS, device="H100-SXM5")
    assert record["device"] == "H100-SXM5" and record["prediction"]["device"] == "H100-SXM5"


@pytest.mark.parametrize("device", ["gpu:x", "cuda", "H300", "gpux"])
def test_a_device_that_is_none_is_misuse(device: str) -> None:
    with pytest.raises(ValueError, match="device"):
        judged(RMS, device=device)


def test_a_task_that_would_accept_zeros_judges_nobody() -> None:
    from dataclasses import replace

    loose = replace(TASKS["rmsnorm"].tolerances["Y"], atol=1e6)
    record = evaluate(RMS, task=replace(TASKS["rmsnorm"], tolerances={"Y": loose}), device="simulate")
    assert record["status"] == "WORKLOAD_REJECTED" and "would pass" in record["summary"]


def test_two_evaluations_use_different_data() -> None:
    seeds = [{c["seed"] for c in judged(RMS)["numerics"]["cases"]} for _ in range(2)]
    assert seeds[0].isdisjoint(seeds[1])


def test_faults_of_the_simulated_machine_that_are_no_run_time_error_have_their_own_status() -> None:
    from cake_backend.judge.simulation import FAULT_STATUS
    from cake_backend.simulate import MEANING

    assert set(FAULT_STATUS) <= set(MEANING)
    assert FAULT_STATUS["X014"] is Status.NONDETERMINISTIC
    assert {FAULT_STATUS[c] for c in ("X013", "X015", "X016")} == {Status.STATIC_REJECT}


def test_an_argument_that_does_not_fit_its_parameter_is_called_bad_input() -> None:
    from dataclasses import replace

    task = TASKS["rmsnorm"]
    other = replace(task, tensors=task.tensors | {"W": replace(task.tensors["W"], dtype="f16")}, distributions=(
        replace(task.distributions[0], make=lambda rng, axes: {**task.distributions[0].make(rng, axes), "W": np.ones(axes["D"], np.float16)}),
    ))  # fmt: skip
    program = specialise(parse(RMS).schedules[0]).program
    assert program is not None
    outcome = simulate_cases(program, other, Options(policies=0))
    assert outcome.status is Status.STATIC_REJECT and outcome.summary.startswith("bad input for") and "[X013]" in outcome.summary

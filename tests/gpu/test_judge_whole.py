"""The judge's longer ways on a real device: tensors updated in place, plans, counted cycles, races and a search."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import cake_kernels
from cake_backend.judge import evaluate
from cake_backend.judge.devices import find_devices, target_of
from cake_backend.judge.plan import Case, Options, make_plan
from cake_backend.judge.race import Entry, Track
from cake_backend.judge.session import Candidate, run_session
from cake_backend.judge.verdict import judge_session
from cake_backend.manifest import Manifest
from cake_backend.task import Distribution, Scalar, Shape, Task, Tensor, Tolerance
from cake_backend.toolchain import compile_cuda

DEVICES = find_devices().devices
HOPPER = bool(DEVICES) and DEVICES[0]["capability"] == [9, 0]
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not DEVICES, reason=f"no CUDA device here: {find_devices().reason}")]
TEXTS = {(s.family, s.name): s.text for s in cake_kernels.schedules()}

ADD_IN_PLACE = """
extern "C" __global__ void kernel(const float* X, float* R, float* Y, int N) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) { const float r = R[i] + X[i]; R[i] = r; Y[i] = SCALE * r; }
}
"""


def added(inputs: Any, axes: Any, rows: Any) -> dict[str, Any]:
    total = (inputs["X"].astype(np.float64) + inputs["R"])[:, None]
    picked = total if rows is None else total[rows]
    return {"R": picked, "Y": 2.0 * picked}


EXACT = Tolerance(reason="small integers are exact", compare="exact")
ADD = Task(
    name="add", doc="r = x + r in place, y = 2 r", axes=("N",),
    tensors={"X": Tensor(("N",), "f32"), "R": Tensor(("N",), "f32", "inout"), "Y": Tensor(("N",), "f32", "out")},
    scalars={"N": Scalar("i32", "N")}, shapes=(Shape("small", {"N": 1000}, "sim"), Shape("large", {"N": 1 << 24}, "bench")),
    distributions=(Distribution("integers", lambda rng, a: {n: rng.integers(-9, 9, a["N"]).astype(np.float32) for n in "XR"}),),
    tolerances={"R": EXACT, "Y": EXACT}, oracle=added, flops="2 * N", unit="f32",
)  # fmt: skip


def candidate(scale: float = 2.0, block: int = 256) -> Candidate:
    build = compile_cuda(ADD_IN_PLACE, target_of(DEVICES[0]), defines={"SCALE": f"{scale}f"}, cache=False)
    assert build.cubin is not None, build.log
    manifest = Manifest.from_json({
        "version": 1, "schedule": "add", "target": target_of(DEVICES[0]), "scalars": {"N": "i32"},
        "launches": [{
            "entry": "kernel", "block": block, "grid": {"kind": "tiles", "tiles": [f"cdiv(N, {block})"]},
            "params": [{"kind": "ptr", "tensor": n} for n in "XRY"] + [{"kind": "scalar", "name": "N", "ctype": "i32"}],
        }],
        "tensors": {n: {"rank": 1, "dtype": "f32", "mode": m} for n, m in (("X", "in"), ("R", "inout"), ("Y", "out"))},
    })  # fmt: skip
    return Candidate(build.cubin, manifest)


def test_a_tensor_updated_in_place_is_timed_with_graphs_and_stays_right() -> None:
    one, options = candidate(), Options(heldout=0)
    session = run_session(one, ADD, make_plan(ADD, {}, options, seal="x"), options)
    verdict = judge_session(session, one, ADD)
    assert verdict["status"] in ("PASSED", "TIMING_UNTRUSTED"), verdict["summary"]
    (timed,) = verdict["timing"]
    assert timed["graph"]["rounds"] >= 20 and 0.2 < timed["floor_over_time"] <= 1.03, timed


def test_a_race_tells_right_from_wrong_and_fast_from_slow() -> None:
    entries = [Entry("wide", candidate(block=256)), Entry("narrow", candidate(block=32)), Entry("wrong", candidate(3.0))]
    checks, timed = [Case("d0", ADD.shape("small"), "integers", 3)], Case("d1", ADD.shape("large"), "integers", 4)
    with Track(ADD, checks, timed, poison=9) as track:
        track.check(entries, lambda: 60.0)
        assert [e.status for e in entries] == ["PASSED_UNTIMED", "PASSED_UNTIMED", "INCORRECT_NUMERICAL"]
        track.race(entries[:2], 20, 60.0)
    wide, narrow = (np.median(e.seconds) for e in entries[:2])
    assert len(entries[0].graph) == 20 and wide < narrow and not track.faults


@pytest.mark.skipif(not HOPPER, reason="the corpus's schedule is for capability 9.0")
def test_residual_add_and_norm_passes_with_times_and_cycles() -> None:
    record = evaluate(TEXTS["add_rmsnorm", "hopper"], task=cake_kernels.tasks()["add_rmsnorm"], device="gpu")
    assert record["status"] in ("PASSED", "TIMING_UNTRUSTED"), record["summary"]
    for row in record["timing"]["shapes"]:
        (launch,) = row["cycles"]["launches"]
        seconds = launch["slowest_sm"] / (DEVICES[0]["clock_khz"] * 1e3)
        assert 0.3 * row["seconds"] < seconds < 3 * row["seconds"], "cycles at the highest clock against the measured time"


@pytest.mark.skipif(not HOPPER, reason="the corpus's schedule is for capability 9.0")
def test_a_candidate_is_judged_on_the_shapes_that_it_takes() -> None:
    record = evaluate(TEXTS["kmeans_assign", "hopper_resident"], task=cake_kernels.tasks()["kmeans_assign"], device="gpu", options={"timing": False})
    assert record["status"] == "PASSED_UNTIMED" and record["domain"]["kind"] == "partial", record["summary"]
    assert "many_centroids" in {o["shape"] for o in record["domain"]["outside"]}


@pytest.mark.skipif(not HOPPER, reason="the text is for capability 9.0")
def test_a_plan_runs_its_launches_in_order() -> None:
    plans = _module(Path(__file__).parents[1] / "cake_backend" / "judge" / "test_routine.py")
    record = evaluate(plans.PLAN, task=plans.TASK, device="gpu")
    assert record["status"] in ("PASSED", "TIMING_UNTRUSTED"), record["summary"]
    assert [x["entry"] for x in record["timing"]["shapes"][0]["cycles"]["launches"]] == ["partials", "add"]


@pytest.mark.slow
@pytest.mark.skipif(not HOPPER, reason="the corpus's schedule is for capability 9.0")
def test_a_search_ends_with_a_variant_that_passes_in_full(tmp_path: Path) -> None:
    from cake_mcp import workspace as workspaces
    from cake_mcp.operations.tune import Choice, tune
    from cake_mcp.operations.variants import Family

    family = Family(TEXTS["gemm", "hopper"], "gemm", {"STAGES": [3, 4], "GROUP": [4, 8]})
    workspace = workspaces.create(tmp_path / ".cake")
    found = tune(workspace, family, Choice(shape="square_4096", budget_gpu_s=20, keep=1), lambda *told: print(*told, flush=True)).to_json()
    assert found["evidence"] == "measured" and found["gpu_s"] <= 30 and found["table"][0]["status"] == "PASSED", found["ended"]
    assert found["table"][0]["confirmed"] and found["table"][0]["measured_s"] < 300e-6
    run = workspace.store.runs.get(found["table"][0]["confirmed"])
    assert run is not None and [row["shape"] for row in run.body["timing"]["shapes"]] == ["square_4096"]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made

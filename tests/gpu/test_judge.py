"""The judge on a real device: each way of being wrong is told by its own status, and the next candidate is not harmed."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cake_kernels
from cake_backend.judge.devices import find_devices, target_of
from cake_backend.judge.plan import Options, make_plan
from cake_backend.judge.session import Candidate, run_session
from cake_backend.judge.verdict import judge_session
from cake_backend.manifest import Manifest
from cake_backend.task import Distribution, Scalar, Shape, Task, Tensor, Tolerance, numpy_dtype
from cake_backend.toolchain import compile_cuda

DEVICES = find_devices().devices
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not DEVICES, reason=f"no CUDA device here: {find_devices().reason}")]

spec = importlib.util.spec_from_file_location("cuda_kernels", Path(__file__).with_name("cuda_kernels.py"))
assert spec is not None and spec.loader is not None
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)


def doubled(inputs: Any, axes: Any, rows: Any) -> dict[str, Any]:
    return {"Y": 2.0 * (inputs["X"] if rows is None else inputs["X"][rows]).astype(np.float64)}


DOUBLE = Task(
    name="double", doc="y = 2 x", axes=("N",),
    tensors={"X": Tensor(("N",), "f32"), "Y": Tensor(("N",), "f32", "out")}, scalars={"N": Scalar("i32", "N")},
    shapes=(Shape("small", {"N": 1000}, "sim"), Shape("large", {"N": 1 << 24}, "bench")),
    distributions=(Distribution("normal", lambda rng, axes: {"X": rng.standard_normal(axes["N"], np.float32)}),),
    tolerances={"Y": Tolerance(reason="doubling is exact, a little is left for tests", rtol=1e-4)}, oracle=doubled, flops="N", unit="f32",
)  # fmt: skip


def manifest(cluster: int = 1) -> Manifest:
    return Manifest.from_json({
        "version": 1, "schedule": "double", "target": target_of(DEVICES[0]),
        "launches": [{
            "entry": "kernel", "block": 256, "cluster": [cluster, 1, 1],
            "grid": {"kind": "tiles", "tiles": ["cdiv(N, 256)"], "cluster": [cluster]},
            "params": [{"kind": "ptr", "tensor": "X"}, {"kind": "ptr", "tensor": "Y"}, {"kind": "scalar", "name": "N", "ctype": "i32"},
                       {"kind": "hang"}],
        }],
        "tensors": {"X": {"rank": 1, "dtype": "f32", "mode": "in"}, "Y": {"rank": 1, "dtype": "f32", "mode": "out"}},
        "scalars": {"N": "i32"},
    })  # fmt: skip


def judged(source: str, *, time: bool = False, timeout: float = 60.0, cluster: int = 1) -> dict[str, Any]:
    build = compile_cuda(source, target_of(DEVICES[0]), cache=False)
    assert build.ok and build.cubin is not None, build.log
    candidate = Candidate(build.cubin, manifest(cluster), roles=("load", "math"), barriers=("full",))
    options = Options(timing=time, run_timeout=timeout, heldout=0, shapes=() if time else ("small",))
    plan = make_plan(DOUBLE, {}, options, seal="x")
    return judge_session(run_session(candidate, DOUBLE, plan, options), candidate, DOUBLE)


def test_an_honest_kernel_passes_and_is_timed_below_no_floor() -> None:
    verdict = judged(kernels.HONEST, time=True)
    assert verdict["status"] in ("PASSED", "TIMING_UNTRUSTED"), verdict["summary"]
    (timed,) = verdict["timing"]
    assert timed["graph"]["rounds"] >= 20 and timed["eager"]["rounds"] >= 20
    assert 0.2 < timed["floor_over_time"] <= 1.03, timed


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("SILENT", "INCORRECT_NUMERICAL"),
        ("TAIL_DROPPED", "INCORRECT_NUMERICAL"),
        ("OUT_OF_BOUNDS", "OUT_OF_BOUNDS"),
        ("WRITES_INPUT", "INPUT_MODIFIED"),
        ("UNSTEADY", "NONDETERMINISTIC"),
        ("ILLEGAL_ADDRESS", "RUNTIME_ERROR"),
    ],
)
def test_each_fault_has_its_status_and_does_not_poison_the_next(name: str, status: str) -> None:
    verdict = judged(getattr(kernels, name))
    assert verdict["status"] == status, verdict["summary"]
    assert judged(kernels.HONEST)["status"] == "PASSED_UNTIMED"


def test_unwritten_elements_are_counted() -> None:
    assert "1000 never written" in judged(kernels.SILENT)["summary"]


def test_a_write_behind_the_buffer_is_located() -> None:
    bands = judged(kernels.OUT_OF_BOUNDS)["numerics"][0]["bands"]
    assert bands == {"Y": {"behind": 12, "behind_distance": 0}}


def test_an_endless_kernel_is_killed_and_the_device_recovers() -> None:
    assert judged(kernels.ENDLESS, timeout=8.0)["status"] == "TIMEOUT"
    assert judged(kernels.HONEST)["status"] == "PASSED_UNTIMED"


def test_a_hang_report_names_role_barrier_stage_and_phase() -> None:
    verdict = judged(kernels.HANGING)
    assert verdict["status"] == "HANG", verdict["summary"]
    assert "`math` waits for `full[2]` (parity 1, position 9)" in verdict["summary"]
    assert judged(kernels.HONEST)["status"] == "PASSED_UNTIMED"


@pytest.mark.skipif(not DEVICES or DEVICES[0]["capability"][0] < 9, reason="clusters need capability 9.0")
def test_a_cluster_launch_has_its_ranks() -> None:
    assert judged(kernels.CLUSTERED, cluster=2)["status"] == "PASSED_UNTIMED"


@pytest.mark.skipif(not DEVICES or DEVICES[0]["capability"][0] < 9, reason="the copy engine needs capability 9.0")
def test_tensor_maps_are_encoded_with_their_strides_and_clip_at_the_edges() -> None:
    task = replace(
        DOUBLE, name="copy", axes=("R", "C"),
        tensors={"X": Tensor(("R", "C"), "bf16"), "Y": Tensor(("R", "C"), "bf16", "out")},
        scalars={"R": Scalar("i32", "R"), "C": Scalar("i32", "C")}, shapes=(Shape("ragged", {"R": 77, "C": 200}, "sim"),),
        distributions=(
            Distribution("normal", lambda rng, a: {"X": rng.standard_normal((a["R"], a["C"])).astype(numpy_dtype("bf16"))}),
        ),
        tolerances={"Y": Tolerance(reason="a copy is exact", compare="exact")},
        oracle=lambda inputs, axes, rows: {"Y": (inputs["X"] if rows is None else inputs["X"][rows]).astype(np.float64)},
        flops="R * C",
    )  # fmt: skip
    box = {"dtype": "bf16", "rank": 2, "box": [64, 32], "swizzle": "128b"}
    copy = Manifest.from_json({
        "version": 1, "schedule": "copy", "target": "sm_90a",
        "launches": [{
            "entry": "kernel", "block": 32, "smem": 4096 + 1024 + 64, "grid": {"kind": "tiles", "tiles": ["cdiv(C, 64)", "cdiv(R, 32)"]},
            "params": [{"kind": "tmap", "map": 0}, {"kind": "tmap", "map": 1}, {"kind": "expr", "expr": "cdiv(C, 64)", "ctype": "i32"}],
        }],
        "maps": [{"tensor": "X", **box}, {"tensor": "Y", **box}],
        "tensors": {"X": {"rank": 2, "dtype": "bf16", "mode": "in"}, "Y": {"rank": 2, "dtype": "bf16", "mode": "out"}},
        "scalars": {"R": "i32", "C": "i32"},
    })  # fmt: skip
    build = compile_cuda(kernels.TMA_COPY, target_of(DEVICES[0]), cache=False)
    assert build.cubin is not None, build.log
    options = Options(timing=False, heldout=0)
    candidate = Candidate(build.cubin, copy)
    session = run_session(candidate, task, make_plan(task, {}, options, seal="x"), options)
    verdict = judge_session(session, candidate, task)
    assert verdict["status"] == "PASSED_UNTIMED", verdict["summary"]


CORPUS = [s for s in cake_kernels.schedules() if s.family in cake_kernels.tasks()]


@pytest.mark.slow
@pytest.mark.parametrize("entry", CORPUS, ids=lambda s: f"{s.family}-{s.name}")
def test_the_corpus_passes_on_the_device(entry: Any, tmp_path: Path) -> None:
    from bench.edges import Choice, smallest_timed
    from cake_backend.judge import evaluate

    timed = smallest_timed(Choice(entry.name, entry.family, entry.name, "default"), entry.text)  # all of them take minutes of NumPy
    record = evaluate(entry.text, task=cake_kernels.tasks()[entry.family], device="gpu", options={"timing": False, "bench": timed}, workdir=tmp_path)
    assert record["status"] in ("PASSED_UNTIMED", "SKIPPED"), record["summary"]

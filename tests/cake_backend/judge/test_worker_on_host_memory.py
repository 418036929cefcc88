"""The worker as a real child process with a driver whose device is host memory: what it launches, restores, times and compares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cake_backend.judge.plan import Options, make_plan
from cake_backend.judge.session import Candidate, Session, run_session
from cake_backend.judge.verdict import judge_session
from cake_backend.manifest import Manifest
from cake_backend.task import Distribution, Scalar, Shape, Task, Tensor, Tolerance

DRIVER = Path(__file__).parents[2] / "support" / "host_driver"
ARRAYS = """
import ctypes, numpy as np
def f32(address, n): return np.ctypeslib.as_array((ctypes.c_float * n).from_address(address))
"""


@pytest.fixture(autouse=True)
def host_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(DRIVER))
    monkeypatch.setenv("CAKE_LEASES", str(tmp_path / "leases"))


def added(inputs: Any, axes: Any, rows: Any) -> dict[str, Any]:
    total = (inputs["X"].astype(np.float64) + inputs["R"])[:, None]
    picked = total if rows is None else total[rows]
    return {"R": picked, "Y": 2.0 * picked}


EXACT = Tolerance(reason="small integers are exact", compare="exact")
ADD = Task(
    name="add", doc="r = x + r in place, y = 2 r", axes=("N",),
    tensors={"X": Tensor(("N",), "f32"), "R": Tensor(("N",), "f32", "inout"), "Y": Tensor(("N",), "f32", "out")},
    scalars={"N": Scalar("i32", "N")},
    shapes=(Shape("small", {"N": 100}, "sim"), Shape("large", {"N": 3000}, "bench")),
    distributions=(
        Distribution("integers", lambda rng, a: {n: rng.integers(-9, 9, a["N"]).astype(np.float32) for n in "XR"}),
    ),
    tolerances={"R": EXACT, "Y": EXACT}, oracle=added, flops="2 * N", unit="f32",
)  # fmt: skip
IN_PLACE = ARRAYS + """
PARAMS = {"kernel": "QQQi"}
def kernel(grid, block, x, r, y, n):
    x, r, y = f32(x, n), f32(r, n), f32(y, n)
    r += x
    y[:] = 2 * r
"""


def manifest(**more: Any) -> Manifest:
    return Manifest.from_json({
        "version": 1, "schedule": "add", "target": "sm_90a",
        "launches": [{
            "entry": "kernel", "block": 256, "grid": {"kind": "tiles", "tiles": ["cdiv(N, 256)"]},
            "params": [{"kind": "ptr", "tensor": n} for n in "XRY"] + [{"kind": "scalar", "name": "N", "ctype": "i32"}],
        }],
        "tensors": {n: {"rank": 1, "dtype": "f32", "mode": m} for n, m in (("X", "in"), ("R", "inout"), ("Y", "out"))},
        "scalars": {"N": "i32"}, **more,
    })  # fmt: skip


def judged(kernel: str, task: Task = ADD, made: Manifest | None = None, **options: Any) -> tuple[dict[str, Any], Session]:
    candidate = Candidate(kernel.encode(), made or manifest())
    chosen = Options(heldout=0, run_timeout=60, **options)
    session = run_session(candidate, task, make_plan(task, {}, chosen, seal="x"), chosen)
    return judge_session(session, candidate, task), session


def test_a_tensor_updated_in_place_is_restored_before_every_timed_launch() -> None:
    verdict, session = judged(IN_PLACE)
    assert verdict["status"] == "PASSED", (verdict["summary"], verdict["faults"])
    (timed,) = verdict["timing"]
    assert timed["eager"]["rounds"] == timed["graph"]["rounds"] == 24
    (event,) = session.of("timing")
    checked = session.of("run", event["case"])[0]["digests"]
    assert event["digests"] == [checked] * len(event["digests"]) and set(checked) == {"R", "Y"}
    assert event["graph_calls"] == len(event["digests"]), "one launch a set: a second one would read what the first has left"


def test_restoring_is_no_part_of_the_time() -> None:
    _, session = judged(IN_PLACE + "SECONDS = 7e-3\n")
    (event,) = session.of("timing")
    assert event["eager"] == pytest.approx([7e-3] * 24) and event["graph"] == pytest.approx([7e-3] * 24)


def test_a_kernel_that_keeps_state_between_launches_is_still_found() -> None:
    verdict, _ = judged(IN_PLACE + "calls = [0]\nhonest = kernel\n" + """
def kernel(grid, block, x, r, y, n):
    honest(grid, block, x, r, y, n)
    calls[0] += 1
    if calls[0] > 8: f32(y, n)[0] += 1
""")  # fmt: skip
    assert verdict["status"] == "NONDETERMINISTIC" and "timed run" in verdict["summary"]


def test_without_an_in_place_tensor_a_graph_holds_many_launches() -> None:
    task = replace(ADD, tensors=ADD.tensors | {"R": Tensor(("N",), "f32")}, tolerances={"Y": EXACT})
    _, session = judged(IN_PLACE.replace("r += x", "r = r + x") + "SECONDS = 1e-5\n", task)
    (event,) = session.of("timing")
    assert event["graph_calls"] > len(event["digests"])


def test_whether_an_argument_may_be_written_is_the_tasks_word_not_the_candidates() -> None:
    task = replace(ADD, tensors=ADD.tensors | {"R": Tensor(("N",), "f32")}, tolerances={"Y": EXACT})
    verdict, _ = judged(IN_PLACE, task, timing=False)
    assert verdict["status"] == "INPUT_MODIFIED" and "`R`" in verdict["summary"]


def test_an_output_that_a_candidate_only_reads_stays_poisoned_and_is_wrong() -> None:
    made = manifest(tensors={n: {"rank": 1, "dtype": "f32", "mode": "in"} for n in "XRY"})
    verdict, _ = judged(IN_PLACE.replace("y[:] = 2 * r", "pass"), made=made, timing=False)
    assert verdict["status"] == "INCORRECT_NUMERICAL" and "never written" in verdict["summary"]


UNORDERED = IN_PLACE + """
honest, calls = kernel, [0]
def kernel(grid, block, x, r, y, n):
    honest(grid, block, x, r, y, n)
    calls[0] += 1
    f32(y, n)[0] += calls[0] * STEP
"""
CLOSE = replace(ADD, tolerances={"R": EXACT, "Y": Tolerance(reason="sums in any order", atol=1e-2)})


@pytest.mark.parametrize(("step", "lines", "status"), [(1e-5, (7,), "PASSED"), (1e-5, (), "NONDETERMINISTIC"), (3e-3, (7,), "INCORRECT_NUMERICAL")])
def test_sums_declared_to_have_no_order_are_compared_by_value_in_every_run(step: float, lines: tuple[int, ...], status: str) -> None:
    candidate = Candidate(UNORDERED.replace("STEP", str(step)).encode(), manifest(), unordered=lines)
    chosen = Options(heldout=0, run_timeout=60)
    session = run_session(candidate, CLOSE, make_plan(CLOSE, {}, chosen, seal="x"), chosen)
    verdict = judge_session(session, candidate, CLOSE)
    assert verdict["status"] == status, verdict["summary"]
    if status == "PASSED":
        assert verdict["numerics"][0]["unordered"] == {"lines": [7], "bits_differ": True}
    if status == "INCORRECT_NUMERICAL":
        assert "of a timed run" in verdict["summary"] or "of the last run" in verdict["summary"]

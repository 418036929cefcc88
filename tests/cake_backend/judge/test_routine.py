"""Plans: several launches as one routine, one manifest over its arguments, simulated and run in order over poisoned workspaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cake_backend.binding import bind
from cake_backend.judge import evaluate
from cake_backend.judge.building import build_routine
from cake_backend.judge.evaluation import candidate_of
from cake_backend.judge.plan import Options, make_plan
from cake_backend.judge.routine import Routine
from cake_backend.judge.session import Candidate, Further, run_session
from cake_backend.judge.source import read_source
from cake_backend.judge.verdict import judge_session
from cake_backend.manifest import Manifest
from cake_backend.task import Distribution, Scalar, Shape, Task, Tensor, Tolerance

DRIVER = Path(__file__).parents[2] / "support" / "host_driver"
KERNELS = '''
@cake.schedule(target="sm_90a")
def partials(lm, A: LM.gmem2d[LM.f32, "R", 512], P: LM.gmem2d[LM.f32, 2, 512], R: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(R % 2 == 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(2,), names=("k",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(1, 512), dtype=lm.f32, form="vec", init=0.0)
            for r in lm.range(R // 2):
                total = total + lm.load(A, coords=(0, t.k * (R // 2) + r), shape=(1, 512))
            lm.store(P, total, coords=(0, t.k))

@cake.schedule(target="sm_90a")
def add(lm, P: LM.gmem2d[LM.f32, 2, 512], C: LM.gmem2d[LM.f32, 1, 512]):
    work = lm.role(warps=range(0, 4))
    with work:
        lm.store(C, lm.load(P, coords=(0, 0), shape=(1, 512)) + lm.load(P, coords=(0, 1), shape=(1, 512)), coords=(0, 0))
'''
PLAN = KERNELS + '''
@cake.plan()
def split(lm, A: LM.gmem2d[LM.f32], C: LM.gmem2d[LM.f32], ROWS: LM.i32):
    even = ROWS // 2 * 2
    p = lm.workspace(shape=(2, 512), dtype=lm.f32)
    lm.run(partials, A=A, P=p, R=even)
    lm.run(add, P=p, C=C)
'''


def summed(inputs: Any, axes: Any, rows: Any) -> dict[str, Any]:
    total = inputs["A"].astype(np.float64).sum(0, keepdims=True)
    return {"C": total if rows is None else total[rows]}


TASK = Task(
    name="column_sums", doc="c = sum of the rows of A", axes=("R",),
    tensors={"A": Tensor(("R", 512), "f32"), "C": Tensor((1, 512), "f32", "out")}, scalars={"ROWS": Scalar("i32", "R")},
    shapes=(Shape("few", {"R": 6}, "sim"), Shape("odd", {"R": 7}, "edge"), Shape("many", {"R": 4096}, "bench")),
    distributions=(
        Distribution("integers", lambda rng, a: {"A": rng.integers(-9, 10, (a["R"], 512)).astype(np.float32)}, exact=True),
    ),
    tolerances={"C": Tolerance(reason="sums of small integers are exact", compare="exact")}, oracle=summed, flops="512 * R", unit="f32",
)  # fmt: skip


def routine(text: str = PLAN) -> Routine:
    source = read_source(text, {}, target=None, task=TASK)
    assert source.routine is not None, source.summary
    return source.routine


def test_a_plan_is_simulated_compiled_and_judged_like_one_schedule(tmp_path: Path) -> None:
    record = evaluate(PLAN, task=TASK, device="simulate", workdir=tmp_path, options={"policies": 2})
    assert record["status"] == "PASSED_UNTIMED", record["summary"]
    assert record["compile"]["ok"] and set(record["compile"]["entries"]) == {"partials", "add"}
    assert {"kernel.cubin", "kernel-1.cubin", "kernel.cu", "kernel-1.cu", "manifest.json"} <= {p.name for p in tmp_path.iterdir()}
    assert [o["shape"] for o in record["domain"]["outside"]] == ["odd"], "the plan passes an even number, A has an odd one"
    assert "2 launches" in next(f["text"] for f in record["findings"] if f["kind"] == "prediction")


def test_a_plan_that_launches_in_the_wrong_order_is_wrong() -> None:
    swapped = PLAN.replace("    lm.run(partials, A=A, P=p, R=even)\n    lm.run(add, P=p, C=C)", "    lm.zero(p)\n    lm.run(add, P=p, C=C)\n    lm.run(partials, A=A, P=p, R=even)")
    record = evaluate(swapped, task=TASK, device="simulate", options={"policies": 0})
    assert record["status"] == "INCORRECT_NUMERICAL", record["summary"]


def test_the_merged_manifest_speaks_of_the_plans_arguments_and_reads_back() -> None:
    made = build_routine(routine(), PLAN, timeout=120)
    assert made.manifest is not None and len(made.cubins) == 2
    assert Manifest.loads(made.manifest.dumps()) == made.manifest
    assert set(made.manifest.tensors) == {"A", "C"} and set(made.manifest.scalars) == {"ROWS"}
    assert [x.module for x in made.manifest.launches] == [0, 1]
    layouts = TASK.layouts({"R": 10})
    bound = bind(made.manifest, layouts, {"ROWS": 10})
    assert bound["workspaces"]["p"]["nbytes"] == 2 * 512 * 4 and bound["launches"][0]["tiles"] == 2
    values = [p["value"] for p in bound["launches"][0]["params"] if p["kind"] == "i32"]
    assert 10 in values or 5 in values, "R of the first launch is computed from ROWS"
    assert bound["tensors"]["C"]["mode"] == "out" and bound["tensors"]["A"]["mode"] == "in"


def test_one_schedule_launched_twice_is_one_module() -> None:
    twice = KERNELS + '''
@cake.plan()
def doubled(lm, A: LM.gmem2d[LM.f32], C: LM.gmem2d[LM.f32], ROWS: LM.i32):
    p = lm.workspace(shape=(2, 512), dtype=lm.f32)
    lm.run(partials, A=A, P=p, R=ROWS)
    lm.run(partials, A=A, P=p, R=ROWS)
    lm.run(add, P=p, C=C)
'''
    made = routine(twice)
    assert [p.name for p in made.programs] == ["partials", "add"] and len(made.calls) == 3


def test_clears_go_in_front_of_the_launch_that_follows_them() -> None:
    cleared = PLAN.replace("    lm.run(add", "    lm.zero(C)\n    lm.run(add")
    made = routine(cleared)
    assert [call.clears for call in made.calls] == [(), ("C",)]
    built = build_routine(made, cleared, timeout=120)
    assert built.manifest is not None and built.manifest.launches[1].clears == ("C",)
    trailing = read_source(PLAN + "    lm.zero(C)\n", {}, target=None, task=TASK)
    assert trailing.status == "NOT_LOWERED" and trailing.summary.startswith(f"line {len(PLAN.splitlines()) + 1}: ")


def test_several_schedules_without_a_plan_are_refused_with_what_is_missing() -> None:
    record = evaluate(KERNELS, task=TASK, device="simulate")
    assert record["status"] == "NOT_LOWERED" and "2 schedules (`partials`, `add`) and no plan" in record["summary"]
    assert "`@cake.plan`" in record["summary"]


def test_a_plans_parameter_that_the_task_lacks_is_rejected_with_its_place() -> None:
    record = evaluate(PLAN.replace("ROWS", "NROWS"), task=TASK, device="simulate")
    assert record["status"] == "STATIC_REJECT" and "unknown parameter `NROWS`" in record["summary"]
    assert record["verify"]["diagnostics"][-1]["span"]["line"] > len(KERNELS.splitlines())


# ------------------------------------------------------------ the same through the worker, on a device of host memory

ARRAYS = '''
import ctypes, numpy as np
def f32(address, *shape): return np.ctypeslib.as_array((ctypes.c_float * int(np.prod(shape))).from_address(address)).reshape(shape)
'''
PARTIALS = ARRAYS + '''
PARAMS = {"partials": "QiQi"}
def partials(grid, block, a, rows, p, r):
    halves = f32(a, rows, 512)[:r // 2], f32(a, rows, 512)[r // 2:r]
    f32(p, 2, 512)[:] = [h.sum(0) for h in halves]
'''
ADD = ARRAYS + '''
PARAMS = {"add": "QQ"}
def add(grid, block, p, c):
    f32(c, 1, 512)[:] += f32(p, 2, 512).sum(0)
'''


def on_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clears: list[str], *, first: str = PARTIALS, second: str = ADD, **options: Any) -> dict[str, Any]:
    monkeypatch.setenv("PYTHONPATH", str(DRIVER))
    monkeypatch.setenv("CAKE_LEASES", str(tmp_path))
    grid = {"kind": "tiles", "tiles": [2]}
    ptr = lambda name: {"kind": "ptr", "tensor": name}  # noqa: E731 - used in one table
    manifest = Manifest.from_json({
        "version": 1, "schedule": "split", "target": "sm_90a", "scalars": {"ROWS": "i32"},
        "tensors": {"A": {"rank": 2, "dtype": "f32", "mode": "in"}, "C": {"rank": 2, "dtype": "f32", "mode": "inout"}},
        "workspaces": [{"name": "p", "shape": [2, 512], "dtype": "f32"}],
        "launches": [
            {"entry": "partials", "block": 128, "grid": grid, "params": [
                ptr("A"), {"kind": "extent", "tensor": "A", "dim": 0}, ptr("p"), {"kind": "expr", "expr": "ROWS // 2 * 2", "ctype": "i32"}]},
            {"entry": "add", "block": 128, "grid": grid, "params": [ptr("p"), ptr("C")], "clears": clears, "module": 1},
        ],
    })  # fmt: skip
    candidate = Candidate(first.encode(), manifest, roles=("work",), more=(Further(second.encode(), ("last",), ("full",)),))
    chosen = Options(heldout=0, shapes=("few", "many"), run_timeout=60, **options)
    session = run_session(candidate, TASK, make_plan(TASK, {}, chosen, seal="x"), chosen)
    return judge_session(session, candidate, TASK)


def test_launches_run_in_order_over_a_workspace_and_the_whole_plan_is_timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    verdict = on_host(monkeypatch, tmp_path, ["C"])
    assert verdict["status"] == "PASSED", (verdict["summary"], verdict["faults"])
    assert verdict["timing"][0]["seconds"] >= 2 * 5e-3, "two launches of 5 ms each"


def test_without_its_clear_the_poisoned_output_makes_the_sum_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert on_host(monkeypatch, tmp_path, [], timing=False)["status"] == "INCORRECT_NUMERICAL"


def test_a_clear_behind_the_launch_that_wrote_loses_its_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert on_host(monkeypatch, tmp_path, ["C", "p"], timing=False)["status"] == "INCORRECT_NUMERICAL"


def test_a_workspace_is_poisoned_before_every_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    once = PARTIALS + "whole, calls = partials, []\ndef partials(*a):\n    if not calls: whole(*a)\n    calls.append(1)\n"
    assert on_host(monkeypatch, tmp_path, ["C"], first=once, timing=False)["status"] == "NONDETERMINISTIC"


def test_a_candidate_of_a_plan_keeps_names_for_each_launch() -> None:
    made = routine()
    candidate = candidate_of(build_routine(made, PLAN, timeout=120), made)
    assert candidate.names(0) == (("work",), ()) == candidate.names(1)
    json.dumps(candidate.manifest.to_json())

"""Variant search: what leaves where and why, what is stored, and the whole way to times on a device of host memory."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cake_kernels
from cake_backend.executors import local
from cake_backend.judge import devices, evaluation
from cake_backend.judge.devices import find_devices
from cake_mcp import workspace as workspaces
from cake_mcp.cli import main
from cake_mcp.cli.tune import Progress, _values, table
from cake_mcp.operations.misuse import Misuse
from cake_mcp.operations.tune import Choice, Tuned, tune
from cake_mcp.operations.variants import Family
from cake_mcp.workspace import Workspace

DRIVER = Path(__file__).parents[2] / "support" / "host_driver"
GEMM = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("gemm", "hopper"))
SCALE = '''
@cake.schedule(target="sm_90a")
def scale(lm, X: LM.gmem2d[LM.f32, "ROWS", 512], Y: LM.gmem2d[LM.f32, "ROWS", 512], ROWS: LM.i32, *, WARPS=4, LEAST=0, NOTE=0):
    lm.launch(grid="tiles")
    lm.assume(ROWS >= LEAST)
    work = lm.role(warps=range(0, WARPS))
    sched = lm.scheduler(kind="grid", tiles=(ROWS,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            lm.store(Y, lm.load(X, coords=(0, t.r), shape=(1, 512)) * 2.0, coords=(0, t.r))
'''
TASK = '''
import numpy as np
from cake_backend.task import AxisDomain, Distribution, Scalar, Shape, Task, Tensor, Tolerance

def doubled(inputs, axes, rows):
    x = inputs["X"] if rows is None else inputs["X"][rows]
    return {"Y": 2.0 * x.astype(np.float64)}

TASK = Task(
    name="scale", doc="y = 2 x", axes=("ROWS",), tensors={"X": Tensor(("ROWS", 512), "f32"), "Y": Tensor(("ROWS", 512), "f32", "out")},
    scalars={"ROWS": Scalar("i32", "ROWS")}, shapes=(Shape("few", {"ROWS": 9}, "sim"), Shape("many", {"ROWS": 600}, "bench")),
    distributions=(Distribution("normal", lambda rng, a: {"X": rng.standard_normal((a["ROWS"], 512), np.float32)}),),
    tolerances={"Y": Tolerance(reason="doubling is exact", compare="exact")}, oracle=doubled, flops="512 * ROWS", unit="f32",
    domain={"ROWS": AxisDomain(5, 50)},
)
'''
# Milliseconds a launch by LEAST, which no model can tell apart: 0 and 2 are equally fast, and the numbers of 4 are wrong.
MILLISECONDS = {0: 5, 1: 9, 2: 5, 3: 7, 4: 1}
HOST_KERNEL = '''
import ctypes, numpy as np
PARAMS, SECONDS = {"scale": "QQQQi"}, %g
def f32(address, n): return np.ctypeslib.as_array((ctypes.c_float * n).from_address(address))
def scale(grid, block, x, x_stride, y, y_stride, rows):
    n = rows * 512
    f32(y, n)[:] = f32(x, n) * (2.5 if SECONDS < 2e-3 else 2.0)
'''


def silent(stage: str, done: int, total: int, note: str) -> None:
    return None


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = workspaces.create(tmp_path / ".cake")
    (made.root / "tasks" / "scale.py").write_text(textwrap.dedent(TASK))
    return made


@pytest.fixture
def host_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One GPU of host memory, and candidates whose machine code it can run; everything in front of that is the real thing."""
    environment = local.worker_environment()
    on_host = {**environment, "PYTHONPATH": f"{DRIVER}{os.pathsep}{environment['PYTHONPATH']}", "CAKE_LEASES": str(tmp_path / "leases")}
    for module in (local, devices):  # workers alone: the compiler needs the real bindings
        monkeypatch.setattr(module, "worker_environment", lambda: on_host)
    monkeypatch.setenv("CAKE_LEASES", str(tmp_path / "leases"))
    real = evaluation.candidate_of

    def for_host(built: Any, routine: Any) -> Any:
        seconds = MILLISECONDS[routine.tunables["LEAST"]] * 1e-3
        return replace(real(built, routine), cubin=(HOST_KERNEL % seconds).encode())

    monkeypatch.setattr(evaluation, "candidate_of", for_host)
    find_devices.cache_clear()
    yield
    find_devices.cache_clear()


def searched(workspace: Workspace, grid: dict[str, list[Any]], text: str = SCALE, task: str = "scale", **choice: Any) -> Tuned:
    wanted = Choice(**{"device": "none", "board": "H200-SXM", **choice})
    return tune(workspace, Family(text, task, grid, proposer="test"), wanted, silent)


# ------------------------------------------------------------ without a GPU


def test_variants_leave_with_their_reason_and_the_rest_is_ordered_by_prediction(workspace: Workspace) -> None:
    stages: list[str] = []
    family = Family(GEMM, "gemm", {"STAGES": [2, 4, 9], "GROUP": [8, 4]}, {"BN": 128})
    found = tune(workspace, family, Choice(device="none", board="H200-SXM", shape="square_4096"), lambda stage, *_: stages.append(stage))
    body = found.to_json()
    assert body["evidence"] == "predicted" and body["gpu"] is None and "no GPU was wanted" in body["why_untimed"]
    assert body["counts"]["combinations"] == 6 and body["counts"]["rejected_by_code"] == {"H002": 2}
    gone = {json.dumps(d["params"]): d for d in body["dropped"]}
    assert gone['{"STAGES": 9, "GROUP": 8}']["stage"] == "verify" and "shared memory" in gone['{"STAGES": 9, "GROUP": 8}']["reason"]
    assert gone['{"STAGES": 2, "GROUP": 8}']["stage"] == "rank" and "slower than STAGES=4" in gone['{"STAGES": 2, "GROUP": 8}']["reason"]
    assert {r["params"]["STAGES"] for r in body["table"]} == {4} and len({r["predicted_group"] for r in body["table"]}) == 1, "ties are kept"
    assert all(r["measured_s"] is None and r["registers"] > 0 and r["status"] == "SKIPPED" for r in body["table"])
    assert list(dict.fromkeys(stages)) == ["verify", "rank", "compile"]
    assert json.loads(json.dumps(body)) == body


def test_everything_is_stored_like_other_candidates(workspace: Workspace) -> None:
    found = searched(workspace, {"STAGES": [3, 4, 9]}, GEMM, "gemm", shape="square_4096")
    store = workspace.store
    base = {descent.parent for v in found.variants for descent in store.candidates.descent(v.candidate.id)}
    assert len(base) == 1 and base.pop() in {c.id for c in store.candidates.all()}
    kept = next(v for v in found.variants if v.params == {"STAGES": 4})
    (run,) = store.runs.of(kept.candidate.id)
    assert run.status == "SKIPPED" and run.evidence == "predicted" and run.body["compile"]["ok"] and store.predictions.of(kept.candidate.id)
    assert {"kernel.cubin", "kernel.cu", "manifest.json", "record.json"} <= {p.name for p in Path(run.folder or "").iterdir()}
    rejected = next(v for v in found.variants if v.params == {"STAGES": 9})
    verdict = store.verdicts.latest(rejected.candidate.id)
    assert verdict is not None and verdict.verdict == "fail" and not store.runs.of(rejected.candidate.id)


def test_equal_programs_are_tried_once_and_shapes_outside_leave(workspace: Workspace) -> None:
    found = searched(workspace, {"WARPS": [2, 4], "LEAST": [0, 10_000]})
    stages = {(v.params["WARPS"], v.params["LEAST"]): v.stage for v in found.variants if v.dropped}
    assert stages == {(2, 10_000): "domain", (4, 10_000): "domain"}
    same = searched(workspace, {"NOTE": [1, 2]})
    assert [(v.stage, v.reason) for v in same.variants if v.dropped] == [("duplicate", "the same program as NOTE=1")]


def test_variants_of_a_plan_differ_by_what_the_plan_alone_knows_and_are_compiled_unranked(workspace: Workspace) -> None:
    plan = SCALE + """
@cake.plan()
def once(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], ROWS: LM.i32, *, W=4):
    lm.run(scale, X=X, Y=Y, ROWS=ROWS, WARPS=W)
"""
    found = searched(workspace, {"W": [2, 4]}, plan)
    assert [v.stage for v in found.variants if v.dropped] == []
    body = found.to_json()
    assert [r["predicted_group"] for r in body["table"]] == [None, None] and "plan" in body["table"][0]["unranked"]
    assert {v.built.manifest.launches[0].block for v in found.variants if v.built and v.built.manifest} == {64, 128}


def test_no_more_are_compiled_than_asked_for(workspace: Workspace) -> None:
    found = searched(workspace, {"LEAST": [0, 1, 2, 3]}, most=2)
    assert sum(v.built is not None for v in found.variants) == 2
    assert sum("beyond the 2" in v.reason for v in found.variants) == 2


@pytest.mark.parametrize(
    ("family", "choice", "message"),
    [
        ({"grid": {"WARP": [1]}}, {}, "did you mean `WARPS`"),
        ({"grid": {"WARPS": []}}, {}, "must be given"),
        ({"grid": {"WARPS": [2, 2]}}, {}, "each once"),
        ({"grid": {"WARPS": [2]}, "params": {"WARPS": 4}}, {}, "varied as well"),
        ({"grid": {"WARPS": list(range(5000))}}, {}, "at most 4,096"),
        ({"text": "x = 1"}, {}, "holds no schedule"),
        ({"task": "scales"}, {}, "no task"),
        ({}, {"shape": "huge"}, "no shape"),
        ({}, {"device": "tpu"}, "none of auto"),
        ({}, {"board": "H300"}, "no device"),
    ],
)
def test_what_is_named_wrongly_is_misuse(workspace: Workspace, family: dict[str, Any], choice: dict[str, Any], message: str) -> None:
    wanted: dict[str, Any] = {"text": SCALE, "task": "scale", "grid": {"WARPS": [2]}, **family}
    with pytest.raises(Misuse, match=message):
        tune(workspace, Family(**wanted), Choice(**{"device": "none", **choice}), silent)


# ------------------------------------------------------------ with a device


def test_survivors_are_checked_timed_and_the_fastest_is_judged_in_full(workspace: Workspace, host_device: None) -> None:
    found = searched(workspace, {"LEAST": [0, 1, 2, 3, 4]}, device="auto", keep=1, budget_gpu_s=100)
    body = found.to_json()
    assert body["evidence"] == "measured" and body["gpu"] == "host memory" and body["ended"] == "" and body["faults"] == []
    assert {r["params"]["LEAST"] for r in body["table"][:2]} == {0, 2}, table(found)
    assert [r["status"] for r in body["table"][:2]] == ["PASSED"] * 2 and body["table"][0]["measured_s"] == pytest.approx(5e-3)
    slow = next(r for r in body["table"] if r["params"]["LEAST"] == 1)
    assert slow["rounds"] < 20 and slow["status"] == "TIMING_UNTRUSTED"
    (wrong,) = [d for d in body["dropped"] if d["params"] == {"LEAST": 4}]
    assert wrong["stage"] == "check" and wrong["code"] == "INCORRECT_NUMERICAL" and "`Y` is wrong" in wrong["reason"]
    assert next(r["contestants"] for r in body["rungs"]) == 4 and 0 < body["gpu_s"] < 100
    confirmed = [r for r in body["table"] if r["confirmed"]]
    assert len(confirmed) == 1 and confirmed[0]["place"] == 1
    run = workspace.store.runs.get(confirmed[0]["confirmed"])
    assert run is not None and run.status == "PASSED" and run.evidence == "measured" and any(c["heldout"] for c in run.body["numerics"]["cases"])
    assert workspace.store.runs.of(wrong["candidate_id"])[0].status == "INCORRECT_NUMERICAL"
    shown = table(found)
    assert "measured on host memory" in shown and "1*" in shown and "* passed the full evaluation" in shown and "5000.00" in shown


def test_a_budget_that_is_too_small_says_so_and_times_nobody(workspace: Workspace, host_device: None) -> None:
    found = searched(workspace, {"LEAST": [0, 2]}, device="gpu", budget_gpu_s=1e-3)
    body = found.to_json()
    assert body["ended"] and all(r["measured_s"] is None for r in body["table"])


def test_an_interrupt_keeps_what_was_measured(workspace: Workspace, host_device: None) -> None:
    races = 0

    def impatient(stage: str, done: int, total: int, note: str) -> None:
        nonlocal races
        races += stage == "time"
        if races == 2:
            raise KeyboardInterrupt

    wanted = Choice(device="auto", board="H200-SXM", budget_gpu_s=100, keep=1)
    found = tune(workspace, Family(SCALE, "scale", {"LEAST": [0, 1, 4]}, proposer="test"), wanted, impatient)
    body = found.to_json()
    assert body["interrupted"] and "interrupted" in body["ended"] and body["evidence"] == "measured" and body["gpu_s"] > 0
    assert not any(r["confirmed"] for r in body["table"])
    for v in found.variants:
        (run,) = workspace.store.runs.of(v.candidate.id)
        assert run.evidence == "measured" and (run.status == "INCORRECT_NUMERICAL") == (v.params == {"LEAST": 4})
        assert v.params == {"LEAST": 4} or run.body["tune"]["rounds"] == 4, "the first rung's rounds are there"
    assert "3 variants: 0 rejected, 3 compiled, 2 timed" in table(found)


def test_an_interrupt_while_compiling_keeps_what_was_compiled(workspace: Workspace) -> None:
    def impatient(stage: str, done: int, total: int, note: str) -> None:
        if stage == "compile" and done == 2:
            raise KeyboardInterrupt

    found = tune(workspace, Family(SCALE, "scale", {"LEAST": [0, 1, 2]}, proposer="test"), Choice(device="none", board="H200-SXM", workers=1), impatient)
    assert found.interrupted and [len(workspace.store.runs.of(v.candidate.id)) for v in found.variants].count(1) >= 1


def test_a_second_search_times_again_only_what_might_still_win(workspace: Workspace, host_device: None) -> None:
    grid: dict[str, list[Any]] = {"LEAST": [0, 1, 4]}
    first = searched(workspace, grid, device="auto", keep=1, budget_gpu_s=100, confirmed=False)
    assert first.to_json()["counts"]["known"] == 0
    second = searched(workspace, grid, device="auto", keep=1, budget_gpu_s=100, confirmed=False)
    body = second.to_json()
    assert {r["params"]["LEAST"] for r in body["table"]} == {0} and body["counts"]["known"] == 2 and body["counts"]["timed"] == 1
    gone = {d["params"]["LEAST"]: d for d in body["dropped"]}
    assert "times as slow as LEAST=" in gone[1]["reason"] and "of an earlier search" in gone[1]["reason"] and gone[4]["code"] == "INCORRECT_NUMERICAL"
    assert "2 known from earlier searches" in table(second)
    fresh = searched(workspace, {"LEAST": [4]}, device="auto", budget_gpu_s=100, confirmed=False, fresh=True)
    assert fresh.to_json()["counts"]["known"] == 0
    without = searched(workspace, {"LEAST": [1]}, device="auto", keep=1, budget_gpu_s=100, confirmed=False)
    assert without.to_json()["counts"]["known"] == 0, "what was behind somebody who is not here may be the best of those who are"


# ------------------------------------------------------------ the command


def test_an_interrupted_command_prints_what_it_has_and_leaves_with_130(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scale_kernel.py"
    path.write_text(SCALE)
    arguments = ["tune", "scale", "--schedule", str(path), "--params", "LEAST=0,1", "--device", "none", "--workspace", str(workspace.root)]
    told: list[str] = []

    def impatient(self: Progress, stage: str, done: int, total: int, note: str) -> None:
        told.append(stage)
        if stage == wanted:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "__call__", impatient)
    wanted = "compile"
    assert main(arguments) == 130
    out = capsys.readouterr()
    assert "interrupted" in out.out and "2 variants: 0 rejected" in out.out and "Traceback" not in out.err
    wanted = "verify"
    assert main(arguments) == 130
    assert "interrupted before anything was measured" in capsys.readouterr().err


def test_the_command_prints_a_table_or_json_and_its_progress_elsewhere(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scale_kernel.py"
    path.write_text(SCALE)
    arguments = ["tune", "scale", "--schedule", str(path), "--params", "LEAST=0,1", "WARPS=4,64", "--device", "none", "--workspace", str(workspace.root)]
    assert main(arguments) == 0
    told = capsys.readouterr()
    assert "4 combinations, 2 remain" in told.out and "nothing was run: no GPU was wanted" in told.out and "WARPS=64: [" in told.out
    assert "compile" in told.err and "verify" in told.err
    last = told.out.splitlines()
    assert "4 variants: 2 rejected (" in "\n".join(last) and " 2), 2 compiled, 0 timed; 0.0 GPU-seconds" in "\n".join(last)
    assert main([*arguments, "--format", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [r["place"] for r in body["table"]] == [1, 2] and body["counts"]["left"] == {"verify": 2}


@pytest.mark.parametrize(
    "arguments",
    [
        ["tune"],
        ["tune", "gemm"],
        ["tune", "gemm", "--schedule", "missing.py"],
        ["tune", "gemm", "--schedule", "x.py", "--params", "STAGES"],
        ["tune", "gemm", "--schedule", "x.py", "--params", "STAGES=2", "STAGES=3"],
        ["tune", "gemm", "--schedule", "x.py", "--budget-gpu-s", "-1"],
        ["tune", "gemm", "--schedule", "x.py", "--params", "STAGE=2", "--device", "none"],
        ["tune", "gemm", "--schedule", "x.py", "--most", "0"],
    ],
)
def test_bad_usage_is_status_three(tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAKE_WORKSPACE", raising=False)
    (tmp_path / "x.py").write_text(GEMM)
    try:
        status = main(arguments)
    except SystemExit as left:
        status = left.code
    told = capsys.readouterr()
    assert status == 3 and told.err and "Traceback" not in told.err


def test_values_are_literals_between_commas_or_texts() -> None:
    assert _values("STAGES=2,3,4") == ("STAGES", [2, 3, 4])
    assert _values("TILE=(64,128),(128,128)") == ("TILE", [(64, 128), (128, 128)])
    assert _values("KIND=static,grid") == ("KIND", ["static", "grid"]) and _values("X=1.5,True,None") == ("X", [1.5, True, None])


def test_progress_away_from_a_terminal_is_a_line_a_stage(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    for done in range(100):
        progress("verify", done, 100, "")
    progress("verify", 100, 100, "7 pass")
    progress.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[-1].endswith("100/100 7 pass")

"""The shipped tasks: oracles against plain loops, generators, admission, and what the judge needs of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cake_kernels
from cake_backend.judge.admission import admit
from cake_backend.judge.check import Reference
from cake_backend.task import Distribution, Shape, Task, numpy_dtype

TASKS = cake_kernels.tasks()
PAIRS = [(t, d) for t in TASKS.values() for d in t.distributions]
HERE = [p for p in PAIRS if p[0].name in ("gemm", "kmeans_assign", "rmsnorm")]  # the other families have their own folders


def ids(pair: tuple[Task, Distribution]) -> str:
    return f"{pair[0].name}-{pair[1].name}"


def test_the_families_are_there() -> None:
    assert {"gemm", "kmeans_assign", "rmsnorm", "add_rmsnorm", "softmax", "silu_mul_quant", "attention"} <= set(TASKS)
    assert all(name == task.name for name, task in TASKS.items())


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda t: t.name)
def test_a_task_has_shapes_of_every_kind_several_data_and_a_reason_for_its_tolerance(task: Task) -> None:
    assert {s.kind for s in task.shapes} == {"sim", "check", "edge", "bench"}
    assert len(task.distributions) >= 3 and task.peers and set(task.domain) == set(task.axes)
    assert all(len(t.reason) > 40 for t in task.tolerances.values())


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda t: t.name)
def test_a_task_refuses_null_answers_and_takes_honest_ones(task: Task) -> None:
    admission = admit(task)
    assert admission.ok, admission.faults
    assert admission.trials > 30


@pytest.mark.parametrize("pair", PAIRS, ids=ids)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(pair: tuple[Task, Distribution]) -> None:
    task, distribution = pair
    axes = task.shapes[0].axes
    first, again, other = (task.inputs(axes, distribution, s) for s in (7, 7, 8))
    assert all(first[n].tobytes() == again[n].tobytes() for n in first)
    assert any(first[n].tobytes() != other[n].tobytes() for n in first)


@pytest.mark.parametrize("task", [t for t in TASKS.values() if any(x.widens for x in t.tensors.values())], ids=lambda t: t.name)
def test_an_input_that_the_oracle_widens_may_come_in_f32(task: Task) -> None:
    axes = next(s.axes for s in task.shapes if s.kind == "edge")
    for distribution in task.distributions:
        inputs = task.inputs(axes, distribution, 5)
        wide = {n: x.astype(np.float32) if task.tensors[n].widens else x for n, x in inputs.items()}
        for name, value in task.oracle(inputs, axes, None).items():
            np.testing.assert_array_equal(task.oracle(wide, axes, None)[name], value)


@pytest.mark.parametrize("pair", PAIRS, ids=ids)
def test_sampled_rows_of_the_oracle_equal_the_full_answer(pair: tuple[Task, Distribution]) -> None:
    task, distribution = pair
    axes = task.shapes[0].axes
    inputs = task.inputs(axes, distribution, 3)
    rows = np.array(sorted({0, 1, task.rows(axes) // 2, task.rows(axes) - 1}))
    full, some = task.oracle(inputs, axes, None), task.oracle(inputs, axes, rows)
    for name in full:
        np.testing.assert_allclose(np.asarray(full[name])[rows], some[name], rtol=1e-12, atol=1e-12)


def loops(task: Task, inputs: dict[str, np.ndarray], axes: dict[str, int], row: int) -> dict[str, object]:
    """One output row by the textbook, in Python floats."""
    if task.name == "gemm":
        a, b = inputs["A"].astype(float), inputs["B"].astype(float)
        return {"C": [math.fsum(float(x) * float(y) for x, y in zip(a[row], b[n], strict=True)) for n in range(axes["N"])]}
    if task.name == "rmsnorm":
        x, w = inputs["X"][row].astype(float), inputs["W"].astype(float)
        norm = math.sqrt(math.fsum(float(v) * float(v) for v in x) / len(x) + float(np.float32(1e-6)))
        return {"Y": [float(v) / norm * float(u) for v, u in zip(x, w, strict=True)]}
    b, i = divmod(row, axes["NP"])
    x, mu = inputs["X"][b, i].astype(float), inputs["MU"][b].astype(float)
    best, index = math.inf, 0
    for j in range(axes["NK"]):
        score = float(inputs["MU_SQ"][b, j]) - 2 * math.fsum(float(p) * float(q) for p, q in zip(x, mu[j], strict=True))
        if score < best:  # a comparison with NaN is false, so NaN never wins
            best, index = score, j
    return {"IDX": index, "DIST": best}


@pytest.mark.parametrize("pair", [p for p in HERE if p[1].name not in ("special", "scaled")], ids=ids)
def test_the_oracle_agrees_with_plain_loops(pair: tuple[Task, Distribution]) -> None:
    task, distribution = pair
    axes = task.shapes[0].axes
    inputs = task.inputs(axes, distribution, 5)
    for row in (0, task.rows(axes) - 1):
        got = task.oracle(inputs, axes, np.array([row]))
        for name, expected in loops(task, inputs, axes, row).items():
            np.testing.assert_allclose(np.asarray(got[name])[0], expected, rtol=1e-9, atol=1e-9)


def test_nan_never_wins_and_a_hopeless_point_gets_index_zero() -> None:
    task = TASKS["kmeans_assign"]
    axes = {"NB": 1, "NP": 3, "NK": 4, "D": 128}
    inputs = task.inputs(axes, task.distribution("normal"), 1)
    inputs["X"][0, 1, 5] = np.nan
    inputs["MU"][0, 0, 0] = np.nan
    out = task.oracle(inputs, axes, None)
    assert out["IDX"][1] == 0 and out["DIST"][1] == np.inf
    assert out["IDX"][0] != 0 and np.isfinite(out["DIST"][0])


def test_ties_go_to_the_lowest_index() -> None:
    task = TASKS["kmeans_assign"]
    axes = task.shapes[0].axes
    out = task.oracle(task.inputs(axes, task.distribution("ties"), 2), axes, None)
    assert out["IDX"].max() < axes["NK"] // 2


def f32_answer(task: Task, inputs: dict[str, np.ndarray], shape: Shape) -> dict[str, np.ndarray]:
    """What an honest kernel computes: bf16 inputs, f32 sums in another order than the oracle's, one rounding."""
    wide = {n: a.astype(np.float32) for n, a in inputs.items()}
    if task.name == "gemm":
        c = np.zeros((shape.axes["M"], shape.axes["N"]), np.float32)
        for k in range(0, shape.axes["K"], 16):
            c += wide["A"][:, k : k + 16] @ wide["B"][:, k : k + 16].T
        return {"C": c.astype(numpy_dtype("bf16"))}
    if task.name == "rmsnorm":
        x = wide["X"]
        mean = (x * x).reshape(len(x), 32, x.shape[1] // 32).sum(2, dtype=np.float32).sum(1, dtype=np.float32) / np.float32(x.shape[1])
        return {"Y": (x * (1 / np.sqrt(mean + np.float32(1e-6)))[:, None] * wide["W"]).astype(numpy_dtype("bf16"))}
    score = wide["MU_SQ"][:, None] - 2 * np.einsum("bpd,bkd->bpk", wide["X"], wide["MU"], optimize=True)
    score = np.where(np.isnan(score), np.float32(np.inf), score)
    index = score.argmin(2)
    return {"IDX": index.astype(np.int32), "DIST": np.take_along_axis(score, index[..., None], 2)[..., 0]}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("pair", HERE, ids=ids)
def test_an_honest_f32_kernel_passes(pair: tuple[Task, Distribution]) -> None:
    task, distribution = pair
    for shape in (s for s in task.shapes if s.kind in ("sim", "edge")):
        inputs = task.inputs(shape.axes, distribution, 11)
        verdicts = Reference(task, shape.axes, inputs, None).compare(f32_answer(task, inputs, shape), distribution)
        assert all(v.ok for v in verdicts.values()), (shape.name, {n: v.reason for n, v in verdicts.items()})


def test_a_bf16_accumulator_fails_where_sums_are_long() -> None:
    task = TASKS["gemm"]
    axes = {"M": 64, "N": 64, "K": 2048}
    for name in ("normal", "positive"):
        distribution = task.distribution(name)
        inputs = task.inputs(axes, distribution, 1)
        a, b = inputs["A"].astype(np.float32), inputs["B"].astype(np.float32)
        c = np.zeros((64, 64), numpy_dtype("bf16"))
        for k in range(0, 2048, 16):
            c = (c.astype(np.float32) + a[:, k : k + 16] @ b[:, k : k + 16].T).astype(c.dtype)
        assert not Reference(task, axes, inputs, None).compare({"C": c}, distribution)["C"].ok


def test_a_skipped_k_tile_fails_on_every_distribution() -> None:
    task = TASKS["gemm"]
    axes = {"M": 128, "N": 128, "K": 512}
    for distribution in task.distributions:
        inputs = task.inputs(axes, distribution, 1)
        short = {n: x[:, :448].astype(np.float64) for n, x in inputs.items()}
        with np.errstate(invalid="ignore"):
            c = (short["A"] @ short["B"].T).astype(numpy_dtype("bf16"))
        assert not Reference(task, axes, inputs, None).compare({"C": c}, distribution)["C"].ok, distribution.name


def test_corpus_schedules_are_listed_with_their_text() -> None:
    listed = cake_kernels.schedules()
    assert all(s.name not in ("task", "__init__") for s in listed)
    assert all("@cake.schedule" in s.text for s in listed)
    assert {("gemm", "hopper"), ("kmeans_assign", "hopper"), ("rmsnorm", "hopper")} <= {(s.family, s.name) for s in listed}

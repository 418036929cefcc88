"""GEMM of few rows: oracle, tolerance, and simulated runs of its schedules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from corpus_runs import TEXTS, failures, judged

import cake_kernels
from cake_backend.judge.check import Reference
from cake_backend.task import Distribution, numpy_dtype
from cake_verify import verify_text

TASK = cake_kernels.tasks()["tiny_gemm"]
SMALL = [s for s in TASK.shapes if s.kind in ("sim", "edge")]
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hopper", {}), ("hopper", {"BN": 16, "WARPS": 4}), ("hopper", {"BN": 24, "STAGES": 4}), ("hopper", {"BN": 40, "STAGES": 3}),
    ("hopper_rows", {"MR": 1, "KC": 1024, "WARPS": 4}), ("hopper_rows", {"MR": 4, "KC": 1024, "WARPS": 2}), ("hopper_rows", {"MR": 8, "KC": 2048, "WARPS": 8}),
    ("hopper_few", {"STAGES": 4}), ("hopper_few", {"BN": 32, "WARPS": 4, "EARLY": False}), ("hopper_few_send", {}), ("hopper_few_send", {"SPLIT": 8, "WARPS": 4}),
    ("hopper_send", {}), ("hopper_send", {"SPLIT": 4, "BN": 16, "WARPS": 4}), ("hopper_send", {"SPLIT": 2, "BN": 24, "WARPS": 2}),
)  # fmt: skip


@pytest.mark.parametrize("distribution", [d for d in TASK.distributions if d.name != "special"], ids=lambda d: d.name)
def test_the_oracle_agrees_with_plain_loops(distribution: Distribution) -> None:
    axes = {"M": 3, "N": 16, "K": 104}
    inputs = TASK.inputs(axes, distribution, 5)
    x, w = inputs["X"].astype(float), inputs["W"].astype(float)
    for row in (0, 2):
        expected = [math.fsum(float(p) * float(q) for p, q in zip(x[row], w[n], strict=True)) for n in range(16)]
        np.testing.assert_allclose(TASK.oracle(inputs, axes, np.array([row]))["Y"][0], expected, rtol=1e-9, atol=1e-9)


def product(inputs: dict[str, np.ndarray], *, short: bool = False, columns: int | None = None) -> np.ndarray:
    """An honest kernel in f32, 16 columns at a time; dishonest with bf16 sums or without the last columns."""
    x, w = (inputs[n].astype(np.float32)[:, :columns] for n in "XW")
    y = np.zeros((len(x), len(w)), np.float32)
    for k in range(0, x.shape[1], 16):
        y += x[:, k : k + 16] @ w[:, k : k + 16].T
        y = y.astype(numpy_dtype("bf16")).astype(np.float32) if short else y
    return y.astype(numpy_dtype("bf16"))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("distribution", TASK.distributions, ids=lambda d: d.name)
def test_an_honest_kernel_passes(distribution: Distribution) -> None:
    for shape in SMALL:
        inputs = TASK.inputs(shape.axes, distribution, 3)
        assert not failures(Reference(TASK, shape.axes, inputs, None).compare({"Y": product(inputs)}, distribution)), shape.name


@pytest.mark.parametrize("fault", [{"short": True}, {"columns": 2016}], ids=str)
def test_short_sums_and_missing_columns_fail(fault: dict[str, Any]) -> None:
    axes = {"M": 16, "N": 64, "K": 2048}
    for name in ("normal", "positive"):
        inputs = TASK.inputs(axes, TASK.distribution(name), 2)
        assert failures(Reference(TASK, axes, inputs, None).compare({"Y": product(inputs, **fault)}, TASK.distribution(name))), name


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_the_schedule_is_proved_safe(schedule: str, params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS["tiny_gemm", schedule], params=params)
    assert verdict.verdict == "pass", verdict.to_text()


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_a_simulated_run_is_right(schedule: str, params: dict[str, Any]) -> None:
    longest = params.get("KC", 5000)
    for number, shape in enumerate(s for s in SMALL if s.axes["K"] <= longest and s.axes["M"] <= params.get("MR", 8 if "few" in schedule else 16)):
        distribution = TASK.distributions[(number + len(params)) % 5].name
        assert not failures(judged("tiny_gemm", schedule, params, shape.name, distribution, seed=number)), shape.name


"""Residual addition and RMSNorm: oracle, exactness of the sum, schedules."""

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

TASK = cake_kernels.tasks()["add_rmsnorm"]
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hopper", {}), ("hopper", {"D": 7168, "WARPS": 7, "CTAS": 4, "ONCE": True, "LATE": True}), ("hopper_ring", {}),
    ("hopper_ring", {"D": 2048, "WARPS": 4, "CTAS": 6}), ("hopper_ring", {"D": 8192, "WARPS": 16, "CTAS": 1, "STAGES": 6}),
    ("hopper", {"D": 2048, "ONCE": True, "KEEP": True, "EARLY": True}),
)  # fmt: skip


@pytest.mark.parametrize("distribution", [d for d in TASK.distributions if d.name != "special"], ids=lambda d: d.name)
def test_the_oracle_agrees_with_plain_loops(distribution: Distribution) -> None:
    axes = TASK.shapes[0].axes
    inputs = TASK.inputs(axes, distribution, 5)
    for row in (0, axes["ROWS"] - 1):
        total = [float(numpy_dtype("bf16").type(float(x) + float(r))) for x, r in zip(inputs["X"][row], inputs["R"][row], strict=True)]
        norm = math.sqrt(math.fsum(v * v for v in total) / len(total) + float(np.float32(1e-6)))
        found = TASK.oracle(inputs, axes, np.array([row]))
        np.testing.assert_array_equal(found["R"][0], total)
        np.testing.assert_allclose(found["Y"][0], [v / norm * float(w) for v, w in zip(total, inputs["W"], strict=True)], rtol=1e-9)


def answer(inputs: dict[str, np.ndarray], *, rounded: bool = True) -> dict[str, np.ndarray]:
    """An honest f32 kernel; with `rounded=False` the residual is added a second time in f32 and never rounded before the norm."""
    x, r, w = (inputs[n].astype(np.float32) for n in "XRW")
    total = x + r
    kept = total.astype(numpy_dtype("bf16"))
    h = kept.astype(np.float32) if rounded else total + r
    scale = 1 / np.sqrt((h * h).reshape(len(h), 32, h.shape[1] // 32).sum(2, dtype=np.float32).mean(1) / np.float32(h.shape[1] // 32) + np.float32(1e-6))
    return {"R": kept, "Y": (h * scale[:, None] * w).astype(kept.dtype)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("distribution", TASK.distributions, ids=lambda d: d.name)
def test_an_honest_kernel_passes(distribution: Distribution) -> None:
    for shape in (s for s in TASK.shapes if s.kind in ("sim", "edge")):
        inputs = TASK.inputs(shape.axes, distribution, 3)
        verdicts = Reference(TASK, shape.axes, inputs, None).compare(answer(inputs), distribution)
        assert not failures(verdicts), shape.name


def test_a_residual_added_twice_or_one_last_bit_of_the_sum_fails() -> None:
    axes = TASK.shapes[0].axes
    normal = TASK.distribution("normal")
    inputs = TASK.inputs(axes, normal, 3)
    reference = Reference(TASK, axes, inputs, None)
    assert set(failures(reference.compare(answer(inputs, rounded=False), normal))) == {"Y"}
    off = answer(inputs)
    off["R"].view(np.uint16)[0, 0] ^= 1
    assert set(failures(reference.compare(off, normal))) == {"R"}


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_the_schedule_is_proved_safe(schedule: str, params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS["add_rmsnorm", schedule], params=params)
    assert verdict.verdict == "pass", verdict.to_text()


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_a_simulated_run_is_right(schedule: str, params: dict[str, Any]) -> None:
    d = params.get("D", 4096)
    for shape in (s for s in TASK.shapes if s.kind in ("sim", "edge") and s.axes["D"] == d):
        for distribution in TASK.distributions[:: 2 if shape.kind == "edge" else 1]:
            assert not failures(judged("add_rmsnorm", schedule, params, shape.name, distribution.name))

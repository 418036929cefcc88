"""Softmax of rows: oracle, tolerance, and the three schedules."""

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

TASK = cake_kernels.tasks()["softmax"]
SMALL = {"ROWS": 6, "N": 4096}
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hopper", {}), ("hopper", {"N": 32768, "WARPS": 16, "CTAS": 2, "ONCE": True, "TWICE": True}), ("hopper_ring", {}), ("hopper_ring", {"TWICE": True}),
    ("hopper_ring", {"N": 4096, "WARPS": 8, "CTAS": 3, "STAGES": 8}), ("hopper_long", {}), ("hopper_long", {"N": 32768, "PART": 512}),
)  # fmt: skip


@pytest.mark.parametrize("distribution", [d for d in TASK.distributions if d.name != "masked"], ids=lambda d: d.name)
def test_the_oracle_agrees_with_plain_loops(distribution: Distribution) -> None:
    inputs = TASK.inputs(SMALL, distribution, 5)
    for row in (0,):
        x = [float(v) for v in inputs["X"][row]]
        weights = [math.exp(v - max(x)) for v in x]
        np.testing.assert_allclose(TASK.oracle(inputs, SMALL, np.array([row]))["Y"][0], [w / math.fsum(weights) for w in weights], rtol=1e-9)


def answer(x: np.ndarray, *, shift: bool = True, until: int | None = None) -> np.ndarray:
    """An honest f32 kernel; without `shift` no maximum is taken off, with `until` the sum stops there."""
    wide = x.astype(np.float32)
    p = np.exp2((wide - (np.fmax.reduce(wide, axis=1, keepdims=True) if shift else 0)) * np.float32(math.log2(math.e)))
    return (p / p[:, :until].sum(1, dtype=np.float32, keepdims=True)).astype(numpy_dtype("bf16"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("distribution", TASK.distributions, ids=lambda d: d.name)
def test_an_honest_kernel_passes(distribution: Distribution) -> None:
    for shape in (s for s in TASK.shapes if s.kind in ("sim", "edge")):
        inputs = TASK.inputs(shape.axes, distribution, 3)
        assert not failures(Reference(TASK, shape.axes, inputs, None).compare({"Y": answer(inputs["X"])}, distribution)), shape.name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_missing_maximum_and_a_short_sum_fail() -> None:
    shifted, normal = TASK.distribution("shifted"), TASK.distribution("normal")
    inputs = TASK.inputs(SMALL, shifted, 3)
    assert failures(Reference(TASK, SMALL, inputs, None).compare({"Y": answer(inputs["X"], shift=False)}, shifted))
    inputs = TASK.inputs(SMALL, normal, 3)
    assert failures(Reference(TASK, SMALL, inputs, None).compare({"Y": answer(inputs["X"], until=3968)}, normal))


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_the_schedule_is_proved_safe(schedule: str, params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS["softmax", schedule], params=params)
    assert verdict.verdict == "pass", verdict.to_text()


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_a_simulated_run_is_right(schedule: str, params: dict[str, Any]) -> None:
    n = params.get("N", {"hopper": 4096, "hopper_ring": 32768, "hopper_long": 131072}[schedule])
    for shape in (s for s in TASK.shapes if s.kind in ("sim", "edge") and s.axes["N"] == n):
        for distribution in TASK.distributions[:: 1 if n == 4096 else 2]:
            assert not failures(judged("softmax", schedule, params, shape.name, distribution.name))


@pytest.mark.parametrize(("schedule", "params"), [("hopper", {"ONCE": True, "STREAM": False}), ("hopper_long", {"N": 32768, "PART": 512})], ids=str)
def test_a_launch_that_lets_the_next_one_start_early_is_proved_safe_and_right(schedule: str, params: dict[str, Any]) -> None:
    """Only from sm_90 on."""
    params = {**params, "EARLY": True, "KEEP": True}
    verdict = verify_text(TEXTS["softmax", schedule], params=params, target="sm_90a")
    assert verdict.verdict == "pass", verdict.to_text()
    shape = next(s.name for s in TASK.shapes if s.kind in ("sim", "edge") and s.axes["N"] == params.get("N", 4096))
    assert not failures(judged("softmax", schedule, params, shape, "normal"))

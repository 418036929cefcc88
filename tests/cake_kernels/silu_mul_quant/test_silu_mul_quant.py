"""SiLU-mul and FP8 group quantisation: oracle, what half a step of e4m3 allows, and the schedule."""

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

TASK = cake_kernels.tasks()["silu_mul_quant"]
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hopper", {}), ("hopper", {"WARPS": 8, "CTAS": 1}), ("hopper", {"WARPS": 1, "CTAS": 5, "STAGES": 4, "GROUPS": 8}), ("hopper_few_rows", {}),
    ("hopper_few_rows", {"WARPS": 8, "STAGES": 1}), ("hopper_rows", {}), ("hopper_rows", {"WARPS": 4, "RUNS": 2, "KEEP": True, "EARLY": True}),
)  # fmt: skip


@pytest.mark.parametrize("distribution", TASK.distributions, ids=lambda d: d.name)
def test_the_oracle_agrees_with_plain_loops(distribution: Distribution) -> None:
    axes = {"M": 5, "N": 256}
    inputs = TASK.inputs(axes, distribution, 5)
    for row in (0, 4):
        gate, up = ([float(x) for x in inputs["X"][row, half]] for half in (0, 1))
        v = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up, strict=True)]
        scales = [max(1e-4, *(abs(x) for x in v[i : i + 128])) / 448 for i in (0, 128)]
        found = TASK.oracle(inputs, axes, np.array([row]))
        np.testing.assert_allclose(found["SCALE"][0], scales, rtol=1e-9)
        np.testing.assert_allclose(found["Q"][0], [x / scales[i // 128] for i, x in enumerate(v)], rtol=1e-9, atol=1e-12)


def answer(x: np.ndarray, *, through_bf16: bool = False, group: int = 128, truncate: bool = False) -> dict[str, np.ndarray]:
    """An honest f32 kernel, with or without v rounded to bf16; dishonest with another group width or with truncation."""
    gate, up = x[:, 0].astype(np.float32), x[:, 1].astype(np.float32)
    v = gate / (1 + np.exp(-gate)) * up
    if through_bf16:
        v = v.astype(numpy_dtype("bf16")).astype(np.float32)
    amax = np.abs(v).reshape(len(v), v.shape[1] // group, group).max(2)
    scale = np.repeat(np.maximum(amax, np.float32(1e-4)) / np.float32(448), group // 128, 1)
    q = (v.reshape(len(v), v.shape[1] // 128, 128) / scale[:, :, None]).reshape(v.shape)
    if truncate:
        q = np.trunc(q * 4096) / 4096 * np.float32(0.94)
    return {"Q": q.astype(numpy_dtype("e4m3")), "SCALE": scale}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("through_bf16", [False, True])
@pytest.mark.parametrize("distribution", TASK.distributions, ids=lambda d: d.name)
def test_an_honest_kernel_passes(distribution: Distribution, through_bf16: bool) -> None:
    for shape in (s for s in TASK.shapes if s.kind in ("sim", "edge")):
        inputs = TASK.inputs(shape.axes, distribution, 3)
        verdicts = Reference(TASK, shape.axes, inputs, None).compare(answer(inputs["X"], through_bf16=through_bf16), distribution)
        assert not failures(verdicts), shape.name


@pytest.mark.parametrize("fault", [{"group": 256}, {"truncate": True}], ids=str)
def test_a_wider_group_and_truncation_fail(fault: dict[str, Any]) -> None:
    axes = {"M": 70, "N": 1024}
    normal = TASK.distribution("normal")
    inputs = TASK.inputs(axes, normal, 3)
    assert failures(Reference(TASK, axes, inputs, None).compare(answer(inputs["X"], **fault), normal))


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_the_schedule_is_proved_safe(schedule: str, params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS["silu_mul_quant", schedule], params=params)
    assert verdict.verdict == "pass", verdict.to_text()


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_a_simulated_run_is_right(schedule: str, params: dict[str, Any]) -> None:
    for shape in (s for s in TASK.shapes if s.kind in ("sim", "edge")):
        for distribution in TASK.distributions:
            assert not failures(judged("silu_mul_quant", schedule, params, shape.name, distribution.name))

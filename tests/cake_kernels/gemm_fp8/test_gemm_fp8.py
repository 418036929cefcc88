"""FP8 GEMM with block scales: oracle, tolerance, and simulated runs of its schedules."""

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

TASK = cake_kernels.tasks()["gemm_fp8"]
SMALL = [s for s in TASK.shapes if s.kind in ("sim", "edge")]
THREE = {"MEMBERS": 3, "STAGES": 4, "REGS": 160, "LOAD_REGS": 32}
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hopper", {}), ("hopper", {"BN": 160, "CW": 32}), ("hopper", {**THREE, "CLUSTER": 2}), ("hopper", {"BN": 192, "STAGES": 4, "EARLY": True}),
    ("hopper_halves", {"CLUSTER": 2}), ("hopper_halves", {"LEAD": 64}),
    ("hopper_turns", {}), ("hopper_turns", {"BN": 112, "CLUSTER": 2, "LEAD": 0}), ("hopper_turns", {"BN": 192, "STAGES": 4, "REGS": 232, "LOAD_REGS": 24}),
    ("hopper_turns", {"MEMBERS": 3, "BN": 120, "STAGES": 4, "REGS": 144, "LOAD_REGS": 24, "KMAX": 64}),
    ("hopper_split", {}), ("hopper_split", {"BN": 64, "MEMBERS": 4, "STAGES": 2}),
    ("hopper_split", {"BN": 56, "STAGES": 6, "HINT": "stream", "FIRST": 1}), ("hopper_split", {"MEMBERS": 1, "BN": 96, "STAGES": 4, "CTAS": 2, "ROWS": 3, "WARM": True}),
    ("hopper_share", {"LAST": 2, "SLICES": 2, "UNROLL": 2}), ("hopper_share", {"LAST": 1, "FIRST": 0, "SLICES": 1, "UNROLL": 1, "ROWS": 2}),
    ("hopper_single", {"ROWS": 2}), ("hopper_single", {"BN": 128, "STAGES": 5, "UNROLL": 1, "WARM": True}), ("hopper_tables", {}), ("hopper_tables", {"BN": 112, "LEAD": 0, "ROWS": 2}),
    ("hopper_relay", {}), ("hopper_relay", {"BN": 96, "SPLIT": 3, "ASTAGES": 4, "BSTAGES": 5, "ROWS": 3}),
    ("hopper_relay", {"BN": 64, "MEMBERS": 2, "ASTAGES": 2, "BSTAGES": 3, "LATE": 5, "GRID": 5, "KMAX": 64}),
    ("hopper_tall_share", {}), ("hopper_tall_share", {"SPLIT": 1, "BN": 96}),
    *((name, {"UNROLL": 4}) for name in ("hopper_halves", "hopper_turns", "hopper_split")),
)  # fmt: skip


@pytest.mark.parametrize("distribution", [d for d in TASK.distributions if d.name != "special"], ids=lambda d: d.name)
def test_the_oracle_agrees_with_plain_loops(distribution: Distribution) -> None:
    axes = {"M": 5, "N": 136, "K": 256}
    inputs = TASK.inputs(axes, distribution, 5)
    a, b, sa, sb = (inputs[n].astype(float) for n in ("A", "B", "SA", "SB"))
    for row in (0, 4):
        found = TASK.oracle(inputs, axes, np.array([row]))["C"][0]
        for n in (0, 127, 128, 135):
            terms = [a[row, k] * sa[k // 128, row] * b[n, k] * sb[n // 128 * 2 + k // 128] for k in range(256)]
            np.testing.assert_allclose(found[n], math.fsum(terms), rtol=1e-9, atol=1e-12)


def promoted(inputs: dict[str, np.ndarray], axes: dict[str, int], *, short: bool = False, blocks: int | None = None, shift: int = 0) -> np.ndarray:
    """An honest kernel in f32, block by block; dishonest with bf16 sums, without the last blocks, or with scales of another block."""
    a, b = inputs["A"].astype(np.float32), inputs["B"].astype(np.float32)
    count = axes["K"] // 128
    sb = np.repeat(inputs["SB"].reshape(-1, count), 128, 0)[: axes["N"]]
    c = np.zeros((axes["M"], axes["N"]), np.float32)
    for i in range(count if blocks is None else blocks):
        part = a[:, 128 * i : 128 * i + 128] @ b[:, 128 * i : 128 * i + 128].T
        j = (i + shift) % count
        c += part * (inputs["SA"][j, : axes["M"], None] * sb[None, :, j])
        c = c.astype(numpy_dtype("bf16")).astype(np.float32) if short else c
    return c.astype(numpy_dtype("bf16"))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("distribution", TASK.distributions, ids=lambda d: d.name)
def test_an_honest_kernel_passes(distribution: Distribution) -> None:
    for shape in SMALL:
        inputs = TASK.inputs(shape.axes, distribution, 3)
        assert not failures(Reference(TASK, shape.axes, inputs, None).compare({"C": promoted(inputs, shape.axes)}, distribution)), shape.name


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("fault", [{"short": True}, {"blocks": 31}, {"shift": 1}], ids=str)
def test_short_sums_a_missing_block_and_misplaced_scales_fail(fault: dict[str, Any]) -> None:
    axes = {"M": 64, "N": 256, "K": 4096}
    for name in ("normal", "positive"):
        inputs = TASK.inputs(axes, TASK.distribution(name), 2)
        assert failures(Reference(TASK, axes, inputs, None).compare({"C": promoted(inputs, axes, **fault)}, TASK.distribution(name))), name


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_the_schedule_is_proved_safe(schedule: str, params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS["gemm_fp8", schedule], params=params)
    assert verdict.verdict == "pass", verdict.to_text()


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_a_simulated_run_is_right(schedule: str, params: dict[str, Any]) -> None:
    fours = 512 * params.get("SPLIT", 2 if schedule == "hopper_tall_share" else 1)  # the blocks of a CTA come in fours
    multiple = 1024 if "UNROLL" in params else fours if schedule in ("hopper_tall_share", "hopper_single", "hopper_tables") else 128
    for number, shape in enumerate(s for s in SMALL if s.axes["K"] <= 1024 and s.axes["K"] % multiple == 0):
        distribution = TASK.distributions[(number + len(params)) % 5].name
        assert not failures(judged("gemm_fp8", schedule, params, shape.name, distribution, seed=number)), shape.name


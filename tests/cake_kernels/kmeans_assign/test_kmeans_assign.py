"""k-means assignment of vectors of 64 to 512 dimensions: its schedules are proved safe and right on small shapes."""

from __future__ import annotations

from typing import Any

import pytest
from corpus_runs import TEXTS, failures, judged

import cake_kernels
from cake_verify import verify_text

TASK = cake_kernels.tasks()["kmeans_assign"]
FOUR = {"MEMBERS": 4, "BN": 128, "REGS": 112, "LOAD_REGS": 32}
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hopper", {"D": 64, "STAGES": 4, "XSTAGES": 3}), ("hopper", {"D": 64, "STAGES": 2, "XSTAGES": 4, "LATE": True, **FOUR}),
    ("hopper_resident", {"D": 64, "STAGES": 4, "XSTAGES": 3, "NKMAX": 256, **FOUR}), ("hopper_deep", {}), ("hopper_deep", {"BN": 128, "STAGES": 5}),
)  # fmt: skip


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_the_schedule_is_proved_safe(schedule: str, params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS["kmeans_assign", schedule], params=params)
    assert verdict.verdict == "pass", verdict.to_text()


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_a_simulated_run_is_right(schedule: str, params: dict[str, Any]) -> None:
    shapes = ("sim_d64", "edge_d64") if params.get("D") == 64 else ("sim_d512", "edge_d512")
    for number, shape in enumerate(shapes):
        distribution = ("ties", "special")[number]
        assert not failures(judged("kmeans_assign", schedule, params, shape, distribution, seed=number)), shape

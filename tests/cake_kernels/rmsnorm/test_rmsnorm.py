"""The RMSNorm schedules: proved safe, and right in simulated runs."""

from __future__ import annotations

from typing import Any

import pytest
from corpus_runs import TEXTS, failures, judged

import cake_kernels
from cake_verify import verify_text

TASK = cake_kernels.tasks()["rmsnorm"]
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hopper", {}), ("hopper", {"D": 7168, "WARPS": 7, "CTAS": 4, "ONCE": True, "LATE": True}), ("hopper_ring", {"D": 8192, "WARPS": 16, "STAGES": 6}),
    ("hopper_ring", {"D": 2048, "WARPS": 4, "CTAS": 6, "STAGES": 8}), ("hopper_ring_warps", {"D": 2048}), ("hopper_ring_warps", {"D": 2048, "WARPS": 11}),
    ("hopper", {"D": 2048, "WARPS": 4, "CTAS": 8, "ONCE": True, "KEEP": True, "EARLY": True}),
)  # fmt: skip


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_the_schedule_is_proved_safe(schedule: str, params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS["rmsnorm", schedule], params=params)
    assert verdict.verdict == "pass", verdict.to_text()


@pytest.mark.parametrize(("schedule", "params"), VARIANTS, ids=str)
def test_a_simulated_run_is_right(schedule: str, params: dict[str, Any]) -> None:
    d = params.get("D", 4096)
    for shape in (s for s in TASK.shapes if s.kind in ("sim", "edge") and s.axes["D"] == d):
        for distribution in TASK.distributions[:: 2 if shape.kind == "edge" else 1]:
            assert not failures(judged("rmsnorm", schedule, params, shape.name, distribution.name))

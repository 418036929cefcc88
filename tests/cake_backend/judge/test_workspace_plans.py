"""Plans with workspaces are right in the simulator and bind to launches whose workspaces have the size they use."""

from __future__ import annotations

import pytest
from workspace_plans import PLANS

from cake_backend.binding import TensorLayout, bind
from cake_backend.judge import evaluate
from cake_backend.judge.building import build_routine
from cake_backend.judge.source import read_source


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_with_a_workspace_is_right_in_the_simulator(name: str) -> None:
    text, task = PLANS[name]
    record = evaluate(text, task=task, device="simulate", options={"policies": 1, "timing": False})
    assert record["status"] == "PASSED_UNTIMED", record["summary"]


def test_a_workspace_is_dense_and_every_launch_points_to_it() -> None:
    text, task = PLANS["split_k"]
    source = read_source(text, {}, target=None, task=task)
    assert source.routine is not None
    manifest = build_routine(source.routine, text, timeout=60.0).manifest
    assert manifest is not None
    axes = task.shape("small").axes
    bound = bind(manifest, {n: TensorLayout.dense(x.shape, x.dtype) for n, x in task.layouts(axes).items()}, task.scalar_values(axes))
    assert bound["workspaces"] == {"parts": {"shape": [3, 70, 40], "strides": [2800, 40, 1], "dtype": "f32", "nbytes": 4 * 3 * 70 * 40}}
    (stored,) = [m for m in bound["maps"] if m["tensor"] == "parts"]
    assert stored["dims"] == [40, 70, 3] and stored["strides"] == [160, 160 * 70]
    assert {p["tensor"] for p in bound["launches"][1]["params"] if p["kind"] == "ptr"} == {"parts", "C"}

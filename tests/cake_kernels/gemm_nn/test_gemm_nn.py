"""GEMM on a B with N contiguous, and the narrow tiles of both GEMM schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corpus_runs import TEXTS, failures, judged

import cake_kernels
from cake_verify import verify_text

TASK = cake_kernels.tasks()["gemm_nn"]
VARIANTS: tuple[dict[str, Any], ...] = ({}, {"BN": 160, "CW": 32}, {"BN": 176, "CW": 176, "CSTAGES": 1}, {"BN": 224, "CW": 32}, {"BN": 128, "DEPTH": 0},
                                        {"BN": 128, "CLUSTER": 2, "EARLY": True})
NN: tuple[dict[str, Any], ...] = ({}, {"BN": 128, "STAGES": 6}, {"BN": 192}, {"BN": 160, "CW": 32}, {"BN": 160, "CW": 32, "PANEL": 32, "EARLY": True},
                                  {"BN": 176, "CW": 176, "CSTAGES": 1, "PANEL": 16}, {"BN": 176, "CW": 176, "CSTAGES": 1, "CLUSTER": 2, "EARLY": True})


def test_the_oracle_multiplies_b_as_it_lies() -> None:
    axes = {"M": 3, "N": 8, "K": 16}
    inputs = TASK.inputs(axes, TASK.distribution("normal"), 1)
    expected = inputs["A"].astype(float) @ inputs["B"].astype(float)
    np.testing.assert_allclose(TASK.oracle(inputs, axes, None)["C"], expected, rtol=1e-12)


@pytest.mark.parametrize(("family", "params"), [("gemm", v) for v in VARIANTS] + [("gemm_nn", v) for v in NN], ids=str)
def test_the_schedule_is_proved_safe(family: str, params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS[family, "hopper"], params=params)
    assert verdict.verdict == "pass", verdict.to_text()


@pytest.mark.parametrize(("family", "params"), [("gemm", v) for v in VARIANTS] + [("gemm_nn", v) for v in NN], ids=str)
def test_a_simulated_run_is_right(family: str, params: dict[str, Any]) -> None:
    for number, shape in enumerate(("sim_tails", "edge_ragged", "edge_thin")):
        distribution = TASK.distributions[(number + len(params)) % 5].name
        assert not failures(judged(family, "hopper", params, shape, distribution, seed=number)), shape



SHARED: tuple[tuple[str, dict[str, Any]], ...] = (("gemm", {}), ("gemm", {"BN": 256, "STAGES": 4}), ("gemm_nn", {}), ("gemm_nn", {"PANEL": 32, "STAGES": 6}))


@pytest.mark.parametrize(("family", "params"), SHARED, ids=str)
def test_ctas_that_send_each_other_their_sums_are_proved_safe_and_right(family: str, params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS[family, "hopper_share"], params=params)
    assert verdict.verdict == "pass", verdict.to_text()
    for shape, distribution in (("sim_tails", "normal"), ("edge_ragged", "integers")):
        assert not failures(judged(family, "hopper_share", params, shape, distribution)), shape


@pytest.mark.parametrize("params", [{}, {"STAGES": 4}], ids=str)
def test_tiles_that_halve_a_line_between_them_are_proved_safe_and_right(params: dict[str, Any]) -> None:
    verdict = verify_text(TEXTS["gemm_nn", "hopper_lines_share"], params=params)
    assert verdict.verdict == "pass", verdict.to_text()
    for shape, distribution in (("sim_tails", "normal"), ("edge_ragged", "integers"), ("edge_thin", "scaled")):
        assert not failures(judged("gemm_nn", "hopper_lines_share", params, shape, distribution)), shape

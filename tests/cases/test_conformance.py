"""Reported cases of the conformance gate."""

from __future__ import annotations

import pytest
from cases_conformance import CASES, FULL, GRID, POOL, RING, SCALED, TENSOR_MEMORY
from reported import Case, check_bad, check_good, edit

import cake_kernels
from cake_backend.cuda.lower import Lowered, lower
from cake_backend.judge import evaluate, evaluation
from cake_backend.judge.devices import Found, runs_on
from cake_ir import parse, specialise
from cake_verify import verify_text


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bad_input_is_caught_once_by_its_rule_on_its_line(case: Case) -> None:
    for bad in case.bad:
        check_bad(bad)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_control_is_accepted(case: Case) -> None:
    for good in case.good:
        check_good(good)


def lowered(text: str, target: str | None = None) -> Lowered:
    program = specialise(parse(text).schedules[0], {}, target).program
    assert program is not None
    return lower(program)


def test_c069_the_error_names_operation_target_and_alternative() -> None:
    error = verify_text(TENSOR_MEMORY, target="sm_120a").errors[0]
    assert "sm_120a" in error.message and "sm_100a" in error.message and "`acc`" in error.message
    assert "lm.frag(" in error.help


def test_c071_block_scales_on_a_target_that_has_them_are_no_error() -> None:
    assert not verify_text(SCALED, target="sm_121a").errors


def test_c073_a_binary_is_refused_by_a_sibling_chip_before_it_is_loaded() -> None:
    hopper, b300, gb10 = ({"capability": c} for c in ((9, 0), (10, 3), (12, 1)))
    assert not runs_on("sm_100a", hopper) and not runs_on("sm_100a", b300) and not runs_on("sm_120a", gb10)
    assert runs_on("sm_90a", hopper) and runs_on("sm_103a", b300) and runs_on("sm_121a", gb10)


def test_c073_the_refusal_of_a_run_is_a_status_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device list is the only thing that is not real here: this machine may have no GPU."""
    device = {"name": "NVIDIA H200", "capability": (9, 0)}
    monkeypatch.setattr(evaluation, "find_devices", lambda: Found((device,), ""))
    text = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("rmsnorm", "hopper"))
    record = evaluate(text, task=cake_kernels.tasks()["rmsnorm"], device="gpu", target="sm_100a", options={"policies": 1})
    assert (record["status"], record["summary"]) == ("SKIPPED", "NVIDIA H200 (sm_90a) cannot run sm_100a")


def test_c075_the_message_has_both_numbers_and_the_help_a_stage_less() -> None:
    error = verify_text(edit(RING, ("*, STAGES=3", "*, STAGES=4"))).errors[0]
    assert error.facts["expected"] == 101_376 and error.facts["pools"] == 106_496 and "3 stages" in error.help


@pytest.mark.parametrize("target", ["sm_89", "sm_121a"])
def test_c076_shared_memory_is_dynamic_and_its_size_goes_with_the_launch(target: str) -> None:
    out = lowered(POOL, target)
    assert "extern __shared__" in out.text and out.manifest.launches[0].smem == 65536
    assert out.text.count("__shared__") == 1, "nothing is static"


def test_c077_the_whole_of_shared_memory_lowers_to_the_whole() -> None:
    assert lowered(FULL).manifest.launches[0].smem == 232_448


def test_c084_the_grid_is_one_dimensional() -> None:
    out = lowered(GRID)
    assert "blockIdx.x" in out.text and "blockIdx.y" not in out.text and "blockIdx.z" not in out.text

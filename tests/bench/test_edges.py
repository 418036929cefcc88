"""What is tried on a GPU for right numbers, and what its page says of it."""

from __future__ import annotations

from pathlib import Path

import cake_kernels
from bench.edges import Choice, choices, right, run_one, smallest_timed, winners
from bench.edges_page import page
from bench.gpu_tests import outcomes

RUN = {"name": "softmax/hopper", "family": "softmax", "schedule": "hopper", "why": "default", "status": "PASSED_UNTIMED", "summary": "right",
       "shapes": {"sim_6x4096": [5, 0], "drawn afresh": [2, 0]}, "outside": [], "fixed": {"N": 4096}}  # fmt: skip


def test_every_schedule_is_tried_with_its_own_parameters_and_every_winner_with_its_own() -> None:
    found = choices([])
    assert {(c.family, c.schedule) for c in found if c.why == "default"} == {(s.family, s.name) for s in cake_kernels.schedules()}
    assert {c.name for c in found if c.why == "fastest"} == set(winners()) and len(set(winners())) > 30


def test_of_the_timed_shapes_the_one_of_least_data_that_the_schedule_takes_is_tried() -> None:
    texts = {(s.family, s.name): s.text for s in cake_kernels.schedules()}

    def least(family: str, schedule: str, **params: int) -> tuple[str, ...]:
        return smallest_timed(Choice("x", family, schedule, "default", params), texts[family, schedule])

    assert least("softmax", "hopper") == ("bench_16384x4096",)
    assert least("kmeans_assign", "hopper_deep") == ("assign_d512",), "its own parameters say how long a vector is"
    assert least("gemm_fp8", "hopper_tall_share") == ("m64_n7168_k2048",)


def test_a_choice_is_judged_by_shape() -> None:
    found = run_one(Choice("rmsnorm/hopper", "rmsnorm", "hopper", "default"), "simulate")
    assert right(found) and found["evidence"] == "simulated" and set(found["shapes"]) == {"sim_5x4096"} and not found["wrong"]


def test_the_page_counts_cases_and_names_what_was_wrong() -> None:
    wrong = {**RUN, "name": "cake_softmax_x", "why": "fastest", "status": "INCORRECT_NUMERICAL", "summary": "output `Y` is wrong", "shapes": {"sim_6x4096": [4, 1]}}
    edges = {"device": "NVIDIA H200", "date": "2026-11-30T00:00:00", "runs": [RUN, wrong], "not_started": [], "command": "c", "wall_s": 1.0}
    told = page(edges, {"command": "pytest", "passed": 3, "skipped": 0, "failed": ["test_x::test_y"], "seconds": 2.0})
    assert not right(wrong) and "12 cases, 1 wrong" in told and "| `hopper` | its own | 2 | 7 | 0 | other N |" in told
    assert "**1**: INCORRECT_NUMERICAL" in told and "failed: `test_x::test_y`" in told and "`sim_6x4096` (ROWS 6, N 4096)" in told


def test_outcomes_of_a_report(tmp_path: Path) -> None:
    report = tmp_path / "r.xml"
    report.write_text('<t><testcase classname="a.b" name="x"/><testcase classname="a.b" name="y"><failure/></testcase><testcase classname="c" name="z"><skipped/></testcase></t>')
    assert outcomes(report) == {"b::x": set(), "b::y": {"failure"}, "c::z": {"skipped"}}

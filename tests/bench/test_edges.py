"""What is tried on a GPU for right numbers, and what its page says of it."""

from __future__ import annotations

import json
from pathlib import Path

import cake_kernels
from bench.candidates import CANDIDATES
from bench.edges import Choice, choices, right, run_one, smallest_timed, together
from bench.edges_page import page
from bench.gpu_tests import outcomes
from bench.performance import RESULTS, winners

ROOT = Path(__file__).parents[2]

RUN = {"name": "softmax/hopper", "family": "softmax", "schedule": "hopper", "why": "default", "status": "PASSED_UNTIMED", "summary": "right",
       "shapes": {"sim_6x4096": [5, 0], "drawn afresh": [2, 0]}, "outside": [], "fixed": {"N": 4096}}  # fmt: skip


def test_every_schedule_is_tried_with_its_own_parameters_and_every_winner_with_its_own() -> None:
    found = choices([])
    assert {(c.family, c.schedule) for c in found if c.why == "default"} == {(s.family, s.name) for s in cake_kernels.schedules()}
    assert {c.name for c in found if c.why == "fastest"} == set(winners()) and len(set(winners())) > 30
    everything = [c.name for c in choices(["gemm_nn"], everything=True) if c.why != "default"]
    assert sorted(everything) == sorted(c.name for c in CANDIDATES if c.family == "gemm_nn")


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


def test_the_recorded_run_tried_everything_and_all_of_it_was_right() -> None:
    edges, tests = (json.loads((RESULTS / name).read_text()) for name in ("edges.json", "gpu-tests.json"))
    assert (ROOT / "docs" / "correctness.md").read_text() == page(edges, tests), "run `python -m bench.edges_page > docs/correctness.md`"
    assert all(right(r) and r["evidence"] == "measured" for r in edges["runs"]) and not edges["not_started"] and not tests["failed"]
    for task in cake_kernels.tasks().values():
        met = {name for r in edges["runs"] if r["family"] == task.name for name in r["shapes"]}
        assert not {s.name for s in task.shapes if s.kind != "bench"} - met, "every shape that is not timed was tried by somebody"


def test_a_later_run_of_one_family_keeps_the_others(tmp_path: Path) -> None:
    earlier = {"runs": [RUN, {**RUN, "name": "gone", "family": "gemm_fp8"}], "wall_s": 60.0, "asked": 2, "command": "first"}
    later = {"runs": [{**RUN, "name": "new", "family": "gemm_fp8"}], "wall_s": 5.0, "asked": 1, "command": "second", "date": "d", "not_started": []}
    found = together(earlier, later, ["gemm_fp8"])
    assert [r["name"] for r in found["runs"]] == ["new", "softmax/hopper"] and found["wall_s"] == 65.0 and found["command"] == "first`, `second"


def test_outcomes_of_a_report(tmp_path: Path) -> None:
    report = tmp_path / "r.xml"
    report.write_text('<t><testcase classname="a.b" name="x"/><testcase classname="a.b" name="y"><failure/></testcase><testcase classname="c" name="z"><skipped/></testcase></t>')
    assert outcomes(report) == {"b::x": set(), "b::y": {"failure"}, "c::z": {"skipped"}}

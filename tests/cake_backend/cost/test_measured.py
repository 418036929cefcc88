"""The model against SM cycles of sixteen launches on an H200: errors, order, and what a ranking may claim."""

import itertools
import statistics
from pathlib import Path

import pytest

from bench import predicted as bench
from cake_backend.cost import Prediction, Ranking, predict, rank
from cake_backend.cost.calibration import calibrations
from cake_backend.tactic import read_tactic
from cake_ir import parse, specialise
from cake_ir.program import Program

Found = dict[tuple[str, str], tuple[bench.Launch, Prediction]]
SHAPES = ("square_4096", "square_8192")
SEPARATED = 0.05
TACTICS = Path(__file__).resolve().parents[3] / "tactics"


def program_of(text: str) -> Program:
    done = specialise(parse(text, "test").schedules[0], {})
    assert done.program is not None, done.faults
    return done.program


@pytest.fixture(scope="module")
def found() -> Found:
    return {(x.shape, x.name): (x, predict(x.program, x.axes)) for x in bench.launches()}


@pytest.fixture(scope="module")
def rankings(found: Found) -> dict[str, Ranking]:
    out = {}
    for shape in SHAPES:
        launches = [x for x, _ in found.values() if x.shape == shape]
        out[shape] = rank([(x.name, x.program, None) for x in launches], launches[0].axes)
    return out


def _errors(found: Found, fitted: bool) -> list[float]:
    return [abs(p.cycles.mid / x.cycles - 1) for x, p in found.values() if x.fitted == fitted and p.cycles is not None]


def test_there_are_launches_to_judge_by_and_they_repeat(found: Found) -> None:
    assert len(_errors(found, True)) == 8 and len(_errors(found, False)) == 8
    assert all(x.spread < 0.015 for x, _ in found.values())


def test_held_out_launches_are_within_the_residual_that_the_calibration_states(found: Found) -> None:
    residual = calibrations()["H200-SXM"].residual
    assert max(_errors(found, False)) <= residual and statistics.median(_errors(found, False)) < 0.01
    assert max(_errors(found, True)) <= residual


def test_every_interval_holds_the_measured_cycles(found: Found) -> None:
    for x, p in found.values():
        assert p.cycles is not None and p.cycles.low < x.cycles < p.cycles.high, x


@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_that_are_apart_are_predicted_in_order(found: Found, shape: str) -> None:
    apart = 0
    for (x, p), (y, q) in itertools.combinations([v for v in found.values() if v[0].shape == shape], 2):
        if abs(x.cycles / y.cycles - 1) > SEPARATED and min(x.cycles, y.cycles) * (1 + SEPARATED) < max(x.cycles, y.cycles):
            assert p.cycles is not None and q.cycles is not None
            assert (p.cycles.mid < q.cycles.mid) == (x.cycles < y.cycles), (x.name, y.name)
            apart += 1
    assert apart >= 13


@pytest.mark.parametrize("shape", SHAPES)
def test_a_ranking_claims_nothing_that_was_measured_otherwise(found: Found, rankings: dict[str, Ranking], shape: str) -> None:
    for winner, losers in rankings[shape].decisive.items():
        for loser in losers:
            assert found[shape, winner][0].cycles * 1.03 < found[shape, loser][0].cycles, (winner, loser)


@pytest.mark.parametrize("shape", SHAPES)
def test_two_stages_are_a_cliff_and_tile_order_and_depth_are_ties(rankings: dict[str, Ranking], shape: str) -> None:
    r = rankings[shape]
    assert {d.id for d in r.dropped} == {"cake_gemm_stages2"} and r.groups[-1] == ("cake_gemm_stages2",)
    assert {"cake_gemm", "cake_gemm_group1", "cake_gemm_group16", "cake_gemm_depth0"} <= set(r.groups[0])


def test_no_constant_contradicts_the_counters(found: Found) -> None:
    entries = calibrations()["H200-SXM"].entries
    launches = [x for x, _ in found.values()]
    rates = bench.tensor_rate(launches, 132)
    assert entries["tensor_flop_16"].low <= min(rates) and max(rates) <= entries["tensor_flop_16"].high
    assert entries["tensor_flop_16"].value == pytest.approx(statistics.median(rates), abs=2)
    settings = {x.name: bench.prepared(x) for x in launches if x.shape == "square_8192"}
    big = [x for x in launches if x.shape == "square_8192"]
    assert entries["fill_bytes"].low <= max(bench.step_bytes(x, settings[x.name]) for x in big) <= entries["fill_bytes"].value
    most = max(big, key=lambda x: x.l2_bytes / x.seconds)
    assert entries["l2_tb_s"].low <= most.l2_bytes / most.seconds / 1e12 <= entries["l2_tb_s"].high
    assert entries["l2_merge"].value == pytest.approx(bench.l2_share(most, settings[most.name]), abs=0.02)


def test_one_slot_for_the_points_of_k_means_costs_about_what_was_measured() -> None:
    page = read_tactic((TACTICS / "double-buffer-the-outer-operand.md").read_text("utf-8"))
    assert "1.11x slower" in page.effect
    one, two = (predict(program_of(text), page.arguments).corners["nominal"] for text in (page.before, page.after))
    assert one / two == pytest.approx(1.11, abs=0.04)


def test_the_stated_constants_are_the_ones_that_the_fit_gives(found: Found) -> None:
    calibration = calibrations()["H200-SXM"]
    fitted = bench.fit([x for x, _ in found.values()], calibration, rounds=3)
    for name, value in fitted.items():
        entry = calibration.entries[name]
        assert entry.low < value < entry.high
        assert abs(value - entry.value) < 0.15 * (entry.high - entry.low), name

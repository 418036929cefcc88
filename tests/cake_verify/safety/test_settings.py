"""Trip settings: they respect assumptions, cover what has to be covered, and tell different expressions apart."""

import pytest
import safety_schedules as schedules

from cake_verify.analyses.settings import Settings
from cake_verify.rules.examples import LOOP, edit


def found(source: str, **params: object):
    return Settings(schedules.program(source, **params)).find()


def test_settings_cover_none_one_and_a_window_of_iterations() -> None:
    settings, lost = found(schedules.text("kmeans_assign"))
    assert not lost
    trips = {s.trips for s in settings}
    assert {(0, 0), (1, 1), (5, 5)} <= trips
    assert max(s.tiles for s in settings) >= 4


def test_assumptions_are_respected() -> None:
    settings, _ = found(schedules.text("gemm_ws"))
    assert settings and all(s.args["K"] > 0 for s in settings)
    settings, _ = found(schedules.text("gemm_sm80"))
    assert all(s.args["K"] % 8 == 0 and s.args["N"] % 8 == 0 for s in settings)


MATH = "            for k in lm.range(kt):\n                s = lm.step(ring)\n                lm.wait(full, stage=s)"


def test_arguments_lie_on_and_on_both_sides_of_block_boundaries() -> None:
    settings, _ = found(edit(LOOP, (MATH, MATH.replace("lm.range(kt)", "lm.range((K + 63) // 64 + K // 1024)"))))
    assert {s.args["K"] % 64 for s in settings} >= {0, 1, 63}


@pytest.mark.parametrize("more", ["", "            if kt > 2:\n                lm.sync(own)\n"])
def test_no_loop_differs_from_another_for_what_is_left_of_a_block(more: str) -> None:
    """Then it is tried once, by the run that shows what values mean."""
    settings, _ = found(edit(LOOP, (MATH, more + MATH)))
    assert [s.telling for s in settings if s.args["K"] % 64] == [True]


def test_branches_on_arguments_are_tried_on_both_sides_of_a_boundary() -> None:
    settings, _ = found(edit(LOOP, (MATH, "            if K % 64 == 1:\n                lm.sync(own)\n" + MATH)))
    assert {s.args["K"] % 64 for s in settings} >= {0, 1, 63}


def test_argument_fixed_by_an_equation_follows_the_other() -> None:
    text = edit(LOOP, ("M: LM.i32, N: LM.i32, K: LM.i32)", "M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32)"),
                ("    lm.assume(K > 0)\n", "    lm.assume(K > 0 and KB * 64 == K)\n"), ("kt = lm.cdiv(K, 64)", "kt = KB"))  # fmt: skip
    settings, lost = found(text)
    assert not lost and all(s.args["KB"] * 64 == s.args["K"] for s in settings)
    assert max(max(s.trips) for s in settings) >= 5


def test_guard_on_an_argument_is_tried_on_both_sides() -> None:
    text = edit(LOOP, ("                lm.arrive(empty, stage=s)\n", "                if N > 1000:\n                    lm.arrive(empty, stage=s)\n                else:\n                    lm.arrive(empty, stage=s)\n"))  # fmt: skip
    settings, _ = found(text)
    assert {s.args["N"] > 1000 for s in settings} == {True, False}


def test_window_grows_with_depth_and_look_ahead() -> None:
    windows = [Settings(schedules.program(schedules.text("gemm_sm80"), STAGES=s)).window for s in (2, 4, 6)]
    assert windows == sorted(windows) and windows[0] < windows[-1]


@pytest.mark.parametrize("count", ["K // 64", "lm.cdiv(K + 1, 64)", "lm.cdiv(K, 64) + 1", "(K + 1) // 64", "lm.min(lm.cdiv(K, 64), 3)"])
def test_different_trip_counts_of_two_roles_are_refused(count: str) -> None:
    result = schedules.verdict(edit(LOOP, (MATH, MATH.replace("lm.range(kt)", f"lm.range({count})"))))
    assert result.faults, result.undecided


@pytest.mark.parametrize("count", ["(K + 63) // 64", "lm.cdiv(K + 64, 64) - 1", "lm.max(kt, 1)"])
def test_equal_trip_counts_in_other_words_are_accepted(count: str) -> None:
    result = schedules.verdict(edit(LOOP, (MATH, MATH.replace("lm.range(kt)", f"lm.range({count})"))))
    assert not result.faults and not result.undecided


def test_trip_counts_from_unrelated_arguments_are_refused() -> None:
    text = edit(LOOP, ("K: LM.i32)", "K: LM.i32, K2: LM.i32)"), (MATH, MATH.replace("lm.range(kt)", "lm.range(lm.cdiv(K2, 64))")))
    result = schedules.verdict(text)
    assert result.faults or result.undecided


def test_trip_counts_from_arguments_that_an_assumption_ties_are_accepted() -> None:
    text = edit(LOOP, ("K: LM.i32)", "K: LM.i32, K2: LM.i32)"), ("lm.assume(K > 0)", "lm.assume(K > 0 and K2 == K)"),
                (MATH, MATH.replace("lm.range(kt)", "lm.range(lm.cdiv(K2, 64))")))  # fmt: skip
    result = schedules.verdict(text)
    assert not result.faults and not result.undecided


def test_loop_that_no_argument_makes_long_is_not_decided() -> None:
    result = schedules.verdict(edit(LOOP, ("kt = lm.cdiv(K, 64)", "kt = lm.max(K * K % 3, 1)")))
    assert not result.faults and [f.code for f in result.undecided][:1] == ["S090"]
    assert "K * K" in result.undecided[0].message

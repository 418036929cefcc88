"""Reported cases of the construct gate: refusals are typed and placed, work is bounded, no order of execution hides a race."""

from __future__ import annotations

import time

import numpy as np
import pytest
from cases_construct import ALIAS, ANY_COUNT, CASES, EARLY, ENDLESS, LONG, NEST, RACE, SKELETON, UNORDERED
from reported import Case, check_bad, check_good

from cake_backend.simulate import Policy, SimResult, adversaries, simulate
from cake_ir import parse, specialise
from cake_verify import gates, verify_text


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bad_input_is_caught_once_by_its_rule_on_its_line(case: Case) -> None:
    for bad in case.bad:
        check_bad(bad)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_control_is_accepted(case: Case) -> None:
    for good in case.good:
        check_good(good)


def test_c001_a_failure_inside_cake_is_one_diagnostic_and_the_next_text_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("a form that this pass takes for impossible")

    with monkeypatch.context() as m:
        m.setattr(gates, "specialise", broken)
        verdict = verify_text(SKELETON)
        assert (verdict.verdict, [d.code for d in verdict.diagnostics]) == ("undecided", ["N999"])
        assert verdict.diagnostics[0].span.line > 0 and "AssertionError" in verdict.diagnostics[0].message
    assert verify_text(SKELETON).verdict == "pass"


@pytest.mark.parametrize("text", [LONG, NEST], ids=["2^31 - 1 iterations", "10^4 x 10^4 iterations"])
def test_c003_a_long_loop_is_decided_or_left_open_in_bounded_time(text: str) -> None:
    started = time.process_time()
    verdict = verify_text(text)
    assert time.process_time() - started < 2.0
    assert not verdict.errors
    assert verdict.verdict == "pass" or [d.code for d in verdict.diagnostics] == ["S090"]


def test_c003_a_count_given_at_launch_is_decided_for_every_value() -> None:
    assert verify_text(ANY_COUNT).verdict == "pass"


def test_c003_unrolling_is_bounded() -> None:
    verdict = verify_text(ENDLESS)
    assert [d.code for d in verdict.errors] == ["N020"]


def run(text: str, policy: str | Policy) -> SimResult:
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    return simulate(program, {"X": np.arange(128, dtype=np.float32), "Y": np.zeros(128, np.float32)}, {}, policy=policy)


def test_c005_one_order_hides_the_race_and_the_adversaries_do_not() -> None:
    program = specialise(parse(UNORDERED).schedules[0]).program
    assert program is not None
    lucky = run(UNORDERED, "canonical")
    assert lucky.ok and np.array_equal(lucky.outputs["Y"], np.arange(128, dtype=np.float32)), "equal results under one order say nothing"
    assert any(not run(UNORDERED, policy).ok for policy in adversaries(program))


def test_c005_with_the_barrier_every_order_is_right() -> None:
    program = specialise(parse(RACE).schedules[0]).program
    assert program is not None
    for policy in ("canonical", *adversaries(program)):
        r = run(RACE, policy)
        assert r.ok and np.array_equal(r.outputs["Y"], np.arange(128, dtype=np.float32))


def test_c007_the_report_shows_both_views() -> None:
    error = verify_text(EARLY).errors[0]
    lines = EARLY.split("\n")
    shown = " ".join(lines[s.line - 1] for s in (error.span, *(span for span, _ in error.related)))
    assert "h.load(" in shown and "l.store(" in shown
    assert verify_text(ALIAS).verdict == "pass"

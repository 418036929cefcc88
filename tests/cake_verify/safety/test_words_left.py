"""Shares whose words are raised and waited for, all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.schedule.q017_words_left import PAGE

SHARES = PAGE.passing


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


@pytest.mark.parametrize("rounds", ["P - 1", "0, P - 1", "P + 1 - 2"])
def test_as_many_rounds_as_words(rounds: str) -> None:
    assert codes(SHARES.replace("lm.range(P - 1)", f"lm.range({rounds})")) == []


@pytest.mark.parametrize(("rounds", "which"), [("P - 2", "the last 1"), ("1, P - 1", "the first 1"), ("P - 1 - 2", "the last 2")])
def test_rounds_that_leave_words_out(rounds: str, which: str) -> None:
    (error,) = verify_text(SHARES.replace("lm.range(P - 1)", f"lm.range({rounds})")).errors
    assert error.code == "Q017" and which in error.message


@pytest.mark.parametrize("cond", ["t.p <= P - 2", "t.p + 1 < P", "not t.p >= P - 1"])
def test_the_condition_may_be_said_otherwise(cond: str) -> None:
    text = SHARES.replace("t.p < P - 1", cond)
    assert codes(text) == [] and codes(text.replace("lm.range(P - 1)", "lm.range(P - 2)")) == ["Q017"]


STREAM = (Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus" / "gemm_stream_k.py").read_text("utf-8")


@pytest.mark.parametrize("cond", ["first > 0", "first >= 1", "not first <= 0", "0 < first"])
def test_who_begins_behind_the_first_round_waits(cond: str) -> None:
    assert "if first > 0:" in STREAM and codes(STREAM.replace("if first > 0:", f"if {cond}:")) == []


@pytest.mark.parametrize("cond", ["first > 1", "first >= 2", "not first <= 1"])
def test_a_condition_that_lets_the_first_round_go_is_refused(cond: str) -> None:
    text = STREAM.replace("if first > 0:", f"if {cond}:")
    (error,) = verify_text(text).errors
    assert error.code == "Q017" and codes(applied(text, error.fixes[0].edits)) == []

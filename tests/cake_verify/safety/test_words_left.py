"""Shares whose words are raised and waited for, all of them."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text
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

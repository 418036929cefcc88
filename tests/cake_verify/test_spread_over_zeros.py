"""Numbers that are spread over a tile."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.consistency.d082_spread_over_zeros import PAGE

GOOD = str(PAGE.passing)
START = "m = lm.rowvec(x, init=0.0) + lm.ld(SINK, 0)"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_a_maximum_that_starts_above_an_element() -> None:
    assert codes(GOOD) == []
    assert codes(GOOD.replace("init=0.0) + lm.ld", "init=1.0) + lm.ld")) == ["D082"]
    assert codes(GOOD.replace(START, "m = lm.ld(SINK, 0) + lm.rowvec(x, init=-2.0)")) == ["D082"]


@pytest.mark.parametrize(
    "start",
    ["m = lm.rowvec(x, init=0.0) + (lm.ld(SINK, 0) + 1.0)", "m = lm.rowvec(x, init=-5.0)", "m = lm.rowvec(x, init=2.0) * lm.ld(SINK, 0)", "m = lm.rowvec(x, init=1.0) + lm.ld(SINK, 0)\n            m = m - 1.0"],
)
def test_other_starts_may_be_meant(start: str) -> None:
    assert "D082" not in codes(GOOD.replace(START, start))


def test_a_bound_that_every_round_compares_with_is_no_start() -> None:
    hinge = GOOD.replace(START, "margin = lm.rowvec(x, init=1.0) + lm.ld(SINK, 0)\n            m = lm.rowvec(x, init=0.0)").replace("m = lm.max(m, lm", "m = m + lm.max(margin, lm")
    assert codes(hinge) == []

"""Sums of exponentials under an exponential."""

from __future__ import annotations

from cake_verify.gates import verify_text
from cake_verify.rules.consistency.d054_exponential_of_sum import PAGE

ROWS = PAGE.passing


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def test_the_sum_in_the_place_of_its_maximum() -> None:
    (error,) = verify_text(PAGE.failing).errors
    assert error.code == "D054" and "`sums` holds sums" in error.message
    scaled = PAGE.failing.replace("lm.exp(sums.ld(16 * w) - top)", "lm.exp2((sums.ld(16 * w) - top) * 1.44269504)")
    assert codes(scaled) == ["D054"]


def test_logarithms_of_sums_and_maxima_are_what_an_exponential_is_taken_of() -> None:
    assert codes(ROWS) == []
    assert codes(ROWS.replace("init=0.0) + d)", "init=0.0) + lm.log(d))").replace("sums.ld(16 * w) * lm.exp(tops.ld(16 * w) - top)", "lm.exp(sums.ld(16 * w) - top)")) == []


def test_a_view_that_holds_other_things_too_says_nothing() -> None:
    both = PAGE.failing.replace("            lm.sync(meet)\n            top = m", "            if t.r < 0:\n                sums.rows(work.index, 1).store(lm.frag(shape=(16,), dtype=lm.f32, form=\"vec\", init=0.0) + m)\n            lm.sync(meet)\n            top = m")
    assert both != PAGE.failing and "D054" not in codes(both)

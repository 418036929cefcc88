"""Scalings that leave out a round behind the one that starts their accumulator."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.consistency.d060_late_scaling import PAGE


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


@pytest.mark.parametrize("guard", ["if k > 1:", "if k >= 2:", "if k != 0 and k != 1:", "if not k < 3:"])
def test_a_round_is_left_out(guard: str) -> None:
    text = PAGE.passing.replace("if k > 0:", guard)
    (error,) = verify_text(text).errors
    assert error.code == "D060"
    assert codes(applied(text, error.fixes[0].edits)) == []


@pytest.mark.parametrize("guard", ["if k >= 1:", "if k != 0:", "if 0 < k:"])
def test_every_round_behind_the_start_in_other_words(guard: str) -> None:
    assert codes(PAGE.passing.replace("if k > 0:", guard)) == []


def test_a_product_that_lags_by_a_round_is_scaled_a_round_later() -> None:
    late = PAGE.passing.replace("                lm.mma(acc, a, b, init=(k == 0))", "                if k > 0:\n                    lm.mma(acc, a, b, init=(k == 1))")
    assert "D060" not in codes(late.replace("                if k > 0:\n                    acc", "                if k > 1:\n                    acc"))
    assert "D060" in codes(late.replace("                if k > 0:\n                    acc", "                if k > 2:\n                    acc"))


def test_the_second_half_of_a_latent_decode() -> None:
    text = CASES["mla_two_groups"].text()
    assert "if p > 0:" in text
    assert [e.code for e in verdict_of(text.replace("if p > 0:", "if p > 1:"), "mla_two_groups")[0].errors] == ["D060"]

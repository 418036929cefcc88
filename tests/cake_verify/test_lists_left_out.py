"""Sums over a list that end before it does."""

from __future__ import annotations

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.schedule.q016_list_left_out import PAGE


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def test_weights_that_are_divided_by_the_sum_of_all_but_one() -> None:
    (error,) = verify_text(PAGE.failing).errors
    assert error.code == "Q016" and "up to 2 of `best`" in error.message
    assert codes(applied(PAGE.failing, error.fixes[0].edits)) == []


def test_a_loop_that_ends_early_and_sums_nothing_that_the_other_uses_is_left_alone() -> None:
    stores = "            for k in lm.static_range({}):\n                v = best[k]\n                lm.store(W, v[0] / total"
    assert stores.format(4) in PAGE.passing
    assert "Q016" not in codes(PAGE.passing.replace(stores.format(4), stores.format(3)))
    assert "Q016" not in codes(PAGE.failing.replace("v[0] / total", "v[0]"))


def test_weights_that_are_multiplied_by_the_inverse_of_such_a_sum() -> None:
    inverse = [x.replace("            for k in lm.static_range(4):\n                v = best[k]\n                lm.store(W, v[0] / total", "            part = lm.rcp(total)\n            for k in lm.static_range(4):\n                v = best[k]\n                lm.store(W, v[0] * part") for x in (PAGE.passing, PAGE.failing)]
    assert "* part" in inverse[0] and codes(inverse[0]) == []
    assert codes(inverse[1]) == ["Q016"]

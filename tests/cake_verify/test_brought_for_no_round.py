"""Loops that bring tiles ahead, and end before the last of them."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.schedule.q036_brought_for_no_round import PAGE

GOOD = str(PAGE.passing)


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


@pytest.mark.parametrize(("was", "now"), [("lm.range(n)", "lm.range(n - 1)"), ("lm.range(n)", "lm.range(n - 2)"), ("i + 1 < n", "i + 1 <= n - 1"), ("i + 1 < n", "n > 1 + i")])
def test_a_loop_that_ends_before_what_it_brings(was: str, now: str) -> None:
    text = GOOD.replace(was, now)
    assert codes(text if "range" in was else text.replace("lm.range(n)", "lm.range(n - 1)")) == ["Q036"]
    assert codes(text) == ([] if "i + 1" in was else ["Q036"])


@pytest.mark.parametrize("guard", ["i + 1 <= n", "i + 1 < n + 1", "i < n"])
def test_a_tile_more_that_is_brought_costs_a_copy_only(guard: str) -> None:
    assert "Q036" not in codes(GOOD.replace("i + 1 < n", guard))


def test_a_last_round_that_is_peeled_passes() -> None:
    last = """            lm.cp_wait(pending=0)
            lm.sync(all_)
            lm.mma(acc, a[lm.at(ring)].ldmatrix(form="a"), b[lm.at(ring)].ldmatrix(form="b"))
            lm.store(Y"""
    peeled = GOOD.replace("lm.range(n)", "lm.range(n - 1)").replace("            lm.cp_wait(pending=0)\n            lm.store(Y", last)
    assert "Q036" not in codes(peeled)


def test_a_list_whose_places_have_one_name_in_and_before_the_loop_moves_rows_as_it_likes() -> None:
    assert codes(GOOD) == []


def test_a_loop_over_pairs_of_neighbours_has_one_round_less() -> None:
    pairs = GOOD.replace("lm.range(n)", "lm.range(n - 1)").replace('a[s.prev()].ldmatrix(form="a"), b[s.prev()]', 'a[s.prev()].ldmatrix(form="a"), a[s]')
    assert "Q036" not in codes(pairs)

"""Tokens of an expert put behind each other by a running count, and padding put behind the last: places that are apart, and such that are not."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from cake_verify import verify_text

TEXT = CASES["moe_align_fill"].text()


def test_what_a_count_hands_out_and_what_lies_behind_it_are_apart() -> None:
    assert verify_text(TEXT).verdict == "pass"


@pytest.mark.parametrize("old, new", [
    ("rest = first + seen + lm.iota(pad, 0)", "rest = first + seen + lm.iota(pad, 0) - 1"),  # the last token's place, too
    ("rest = first + seen + lm.iota(pad, 0)", "rest = first + lm.iota(pad, 0)"),  # all of them
    ("mask=ids == t.e and place < end", "mask=place < end"),  # what was not counted goes to the place of the one before
    ("mask=ids == t.e and place < end", "mask=ids == t.e"),  # an expert's tokens may reach into the next one's places
    ("mask=rest < end)", "mask=rest < end + 1)"),
    ("mask=rest < end)", "mask=rest < CAP)"),
    ("place = first + seen + rank - 1", "place = first + seen + rank"),
    ("lm.assume_values(FIRST, 0, CAP + 1, sorted=True)", "lm.assume_values(FIRST, 0, CAP + 1)"),
    ("mine = lm.where(ids == t.e, 1, 0)", "mine = lm.where(ids == t.e + 1, 1, 0)"),
])  # fmt: skip
def test_places_that_may_meet_are_not_decided(old: str, new: str) -> None:
    assert old in TEXT
    assert verify_text(TEXT.replace(old, new)).verdict != "pass"


def test_a_count_that_is_raised_in_front_of_the_store_leaves_a_gap_and_meets_the_padding() -> None:
    raised = "                seen = seen + lm.reduce(mine, \"add\", axis=0)\n"
    text = TEXT.replace(raised, "").replace("                rank = lm.scan", raised + "                rank = lm.scan")
    assert verify_text(text).verdict != "pass"

"""An output that one arm or another writes in rounds, as memory says: each round has elements of its own."""

from __future__ import annotations

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of

NAME = "cross_entropy_ignored"
ZERO = "lm.store(dX, zero, coords=(i * BLK, t.r), clip=True)"


def test_rounds_of_one_tile_do_not_meet_whichever_arm_it_takes() -> None:
    assert verdict_of(CASES[NAME].text(), NAME)[0].verdict == "pass"


def test_an_arm_that_writes_another_tiles_row_is_not_passed() -> None:
    text = CASES[NAME].text()
    assert ZERO in text
    assert verdict_of(text.replace(ZERO, ZERO.replace("t.r", "0")), NAME)[0].verdict == "undecided"


def test_rounds_that_overlap_in_one_arm() -> None:
    text = CASES[NAME].text()
    verdict = verdict_of(text.replace(ZERO, ZERO.replace("i * BLK", "i * 512")), NAME)[0]
    assert [e.code for e in verdict.errors] == ["Q001"]

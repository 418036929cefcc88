"""An output that one arm or another writes in rounds, as memory says: each round has elements of its own."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of

NAME = "cross_entropy_ignored"
ZERO = "lm.store(dX, zero, coords=(i * BLK, t.r), clip=True)"


def test_rounds_of_one_tile_do_not_meet_whichever_arm_it_takes() -> None:
    assert verdict_of(CASES[NAME].text(), NAME)[0].verdict == "pass"


def test_an_arm_that_writes_another_tiles_row_is_not_passed() -> None:
    text = CASES[NAME].text()
    assert ZERO in text
    assert verdict_of(text.replace(ZERO, ZERO.replace("t.r", "0")), NAME)[0].verdict == "fail"


def test_rounds_that_overlap_in_one_arm() -> None:
    text = CASES[NAME].text()
    verdict = verdict_of(text.replace(ZERO, ZERO.replace("i * BLK", "i * 512")), NAME)[0]
    assert [e.code for e in verdict.errors] == ["Q001"]


ROUNDS = "for i in lm.range(lm.cdiv(V, BLK)):"
LESS = ("for i in lm.range(lm.cdiv(V, BLK) - 1):", "for i in lm.range(V // BLK):")


@pytest.mark.parametrize(("number", "code", "said"), [(0, "S035", "the maximum over `V` of `X` leaves out"), (1, "Q012", "nothing writes `dX` from 2048 on along `V`"), (2, "Q012", "nothing writes `dX` from 2048 on along `V`")])
@pytest.mark.parametrize("less", LESS)
def test_a_loop_in_an_arm_that_ends_a_round_early(number: int, code: str, said: str, less: str) -> None:
    parts = CASES[NAME].text().split(ROUNDS)
    assert len(parts) == 4
    text = ROUNDS.join(parts[: number + 1]) + less + ROUNDS.join(parts[number + 1 :])
    (found,) = verdict_of(text, NAME)[0].errors
    assert (found.code, found.message.startswith(said)) == (code, True), found.message


def test_an_arm_whose_tiles_start_at_the_second() -> None:
    text = CASES[NAME].text()
    d = "lm.store(dX, lm.cast(d, lm.bf16), coords=(i * BLK, t.r)"
    assert d in text
    (found,) = verdict_of(text.replace(d, d.replace("i * BLK", "(i + 1) * BLK")), NAME)[0].errors
    assert found.code == "Q014"

"""The benchmark of elapsed time: its rounds are spread over passes, and every figure is the least of all of them."""

from __future__ import annotations

import pytest

from bench.verify.elapsed import Measured, shares
from cake_verify.rules.examples import COPY


@pytest.mark.parametrize(("rounds", "passes", "expected"), [(12, 3, [4, 4, 4]), (7, 3, [3, 2, 2]), (2, 3, [1, 1]), (5, 1, [5])])
def test_rounds_are_spread_evenly_and_no_pass_is_without_one(rounds, passes, expected):
    assert shares(rounds, passes) == expected


def test_a_row_has_the_least_of_its_passes():
    measured = Measured(COPY)
    for rounds in shares(3, 3):
        measured.once_more(rounds)
    row = measured.row("copy.py")
    assert row["verdict"] == "pass"
    assert len(row["passes"]) == 3
    assert row["ms"] == round(min(row["passes"]), 2)
    assert row["phases"]["parse"] > 0
    assert row["walk"]["events"] > 0

"""The benchmark of elapsed time: its rounds are spread over passes, and every figure is the least of all of them."""

from __future__ import annotations

import pytest

from bench.verify.elapsed import Measured, one_pass, row, shares
from cake_verify.rules.examples import COPY


@pytest.mark.parametrize(("rounds", "passes", "expected"), [(12, 3, [4, 4, 4]), (7, 3, [3, 2, 2]), (2, 3, [1, 1]), (5, 1, [5])])
def test_rounds_are_spread_evenly_and_no_pass_is_without_one(rounds, passes, expected):
    assert shares(rounds, passes) == expected


def test_a_row_has_the_least_of_its_passes():
    first, second = (Measured(ms, ms + 1, "pass", {"parse": ms / 4}, {"walk": ms / 2, "events": 7}) for ms in (3.0, 2.0))
    assert row("copy.py", [first, second]) == {
        "file": "copy.py", "verdict": "pass", "ms": 2.0, "first_ms": 3.0, "passes": [3.0, 2.0], "phases": {"parse": 0.5}, "walk": {"walk": 1.0, "events": 7},
    }  # fmt: skip


def test_a_pass_measures_every_phase_and_the_walk(tmp_path):
    text = tmp_path / "copy.py"
    text.write_text(COPY)
    (measured,) = one_pass([text], 1)
    assert measured.verdict == "pass"
    assert 0 < measured.phases["parse"] < measured.ms + measured.first
    assert measured.walk["events"] > 0

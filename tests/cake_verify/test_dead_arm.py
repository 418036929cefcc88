"""Branches on a minimum or a maximum of which one arm is never taken."""

import pytest

from cake_verify import verify_text
from cake_verify.rules.schedule.q032_dead_arm import PAGE

GOOD = str(PAGE.passing)
END = "end = lm.min(N, (t.g + 1) * 64)"


def codes(condition: str, end: str = END) -> list[str]:
    return [d.code for d in verify_text(GOOD.replace("end < (t.g + 1) * 64", condition).replace(END, end), suggest=False).errors]


@pytest.mark.parametrize("condition", ["end <= (t.g + 1) * 64", "end < (t.g + 1) * 64 + 1", "(t.g + 1) * 64 >= end", "N >= end", "end > N", "end >= N + 1"])
def test_one_arm_is_never_taken(condition: str) -> None:
    assert codes(condition) == ["Q032"]


@pytest.mark.parametrize("condition", ["end < N", "end >= (t.g + 1) * 64", "end == N", "end <= N - 1", "end < t.g * 64"])
def test_either_arm_may_be_taken(condition: str) -> None:
    assert "Q032" not in codes(condition)


def test_a_maximum_is_never_below_what_it_chooses_from() -> None:
    end = "end = lm.max(N, (t.g + 1) * 64)"
    assert "Q032" in codes("end >= N", end) and "Q032" in codes("end < N", end)
    assert "Q032" not in codes("end > N", end) and "Q032" not in codes("end <= N", end)

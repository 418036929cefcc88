"""Results that are multiplied by zero."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.consistency.d084_multiplied_away import PAGE

GOOD = str(PAGE.passing)
ZERO = "            if label < 0:\n                y = y * 0.0\n"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_a_result_that_is_zero_whatever_it_was() -> None:
    assert codes(GOOD) == []
    assert codes(GOOD.replace(ZERO, "            y = y * 0.0\n")) == ["D084"]
    assert codes(GOOD.replace(ZERO, "            y = 0.0 * y\n")) == ["D084"]


@pytest.mark.parametrize(
    "line",
    ["            z = y * 0.0\n            y = y + z\n", "            y = y * 0.5\n", "            if label < 0:\n                y = y + 1.0\n                if label < -1:\n                    y = y * 0.0\n"],
)
def test_other_zeros_pass(line: str) -> None:
    assert "D084" not in codes(GOOD.replace(ZERO, line))

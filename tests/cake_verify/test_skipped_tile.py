"""Branches that leave out tiles, and the masks below them."""

import pytest

from cake_verify import verify_text
from cake_verify.rules.schedule.q031_skipped_tile import PAGE

GOOD = str(PAGE.passing)


def codes(guard: str, mask: str = "lm.iota(x, 0, base=i * 64) <= n") -> list[str]:
    text = GOOD.replace("if i * 64 <= n:", f"if {guard}:").replace("lm.iota(x, 0, base=i * 64) <= n", mask)
    return [d.code for d in verify_text(text, suggest=False).errors]


@pytest.mark.parametrize(
    ("guard", "mask"),
    [
        ("i * 64 < n", "lm.iota(x, 0, base=i * 64) <= n"),
        ("n > i * 64", "n >= lm.iota(x, 0) + i * 64"),
        ("i * 64 + 1 < n", "lm.iota(x, 0, base=i * 64) < n"),
        ("i * 64 + 63 > n", "lm.iota(x, 0, base=i * 64) >= n"),
    ],
)
def test_one_step_too_strict_is_told(guard: str, mask: str) -> None:
    assert codes(guard, mask) == ["Q031"]


@pytest.mark.parametrize(
    ("guard", "mask"),
    [
        ("i * 64 < n", "lm.iota(x, 0, base=i * 64) < n"),
        ("i * 64 <= n + 1", "lm.iota(x, 0, base=i * 64) <= n"),
        ("i * 64 + 64 <= n", "lm.iota(x, 0, base=i * 64) <= n"),
        ("i * 64 + 63 >= n", "lm.iota(x, 0, base=i * 64) >= n"),
    ],
)
def test_what_fits_or_is_another_division_passes(guard: str, mask: str) -> None:
    assert "Q031" not in codes(guard, mask)

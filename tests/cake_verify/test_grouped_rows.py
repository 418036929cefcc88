"""Stores of grouped tiles write the rows of their group: all of them, and none of the next group's."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify import verify_text

TEXT = (Path(__file__).parents[2] / "bench" / "verify" / "corpus" / "gemm_grouped.py").read_text("utf-8")
COUNT = "rows = lm.min(64, t.rows - 64 * math.index)"


def found(text: str) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in verify_text(text).shown() if d.severity == "error"]


def test_the_rows_that_a_member_has_left_are_right() -> None:
    assert found(TEXT) == []


@pytest.mark.parametrize(
    "new",
    [
        "rows = lm.min(64, t.rows - 64 * (1 - math.index))",  # the other member's rest, wrong on an H200
        "rows = 64",
        "rows = lm.min(64, t.rows - 64 * math.index) - 1",
        "rows = lm.min(32, t.rows - 64 * math.index)",
    ],
)
def test_other_numbers_of_rows_are_refused(new: str) -> None:
    """By the walk where one store is wrong by itself (S013), by all stores together where rows are left out (Q001)."""
    text = TEXT.replace(COUNT, new)
    assert text != TEXT
    (fault,) = found(text)
    assert fault[0] in ("S013", "Q001"), fault


def test_a_store_without_a_count_of_rows_is_refused() -> None:
    (fault,) = found(TEXT.replace(", rows=rows)", ")"))
    assert fault[0] in ("S013", "Q001"), fault


def test_a_member_that_never_stores_leaves_its_rows() -> None:
    (fault,) = found(TEXT.replace("if rows > 0:", "if rows > 0 and math.index == 0:"))
    assert fault[0] == "Q001" and "row 64 of a tile of 128 rows is not written" in fault[1], fault

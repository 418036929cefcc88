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
    ("new", "said"),
    [
        ("rows = lm.min(64, t.rows - 64 * (1 - math.index))", "belongs to the next group"),  # the other member's rest, wrong on an H200
        ("rows = 64", "belongs to the next group"),
        ("rows = lm.min(64, t.rows - 64 * math.index) - 1", "row 63 of a tile of 128 rows is not written"),
        ("rows = lm.min(32, t.rows - 64 * math.index)", "is not written"),
    ],
)
def test_other_numbers_of_rows_are_refused(new: str, said: str) -> None:
    text = TEXT.replace(COUNT, new)
    assert text != TEXT
    (fault,) = found(text)
    assert fault[0] == "Q001" and said in fault[1], fault


def test_a_store_without_a_count_of_rows_is_refused() -> None:
    (fault,) = found(TEXT.replace(", rows=rows)", ")"))
    assert fault[0] == "Q001" and "belongs to the next group" in fault[1], fault


def test_a_member_that_never_stores_leaves_its_rows() -> None:
    (fault,) = found(TEXT.replace("if rows > 0:", "if rows > 0 and math.index == 0:"))
    assert fault[0] == "Q001" and "row 64 of a tile of 128 rows is not written" in fault[1], fault

"""Edits of a text: spans as fixes carry them, and find/replace."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_mcp.operations.edits import FindEdit, SpanEdit, apply_edits
from cake_mcp.operations.misuse import Misuse

TEXT = "a = 1\nbb = 22\nccc = 333\n"


def test_a_span_is_half_open_and_counts_characters_from_one() -> None:
    assert apply_edits(TEXT, [SpanEdit(2, 6, 2, 8, "44")]) == "a = 1\nbb = 44\nccc = 333\n"


def test_columns_count_characters_not_bytes() -> None:
    assert apply_edits("é = 'ü'  # x", [SpanEdit(1, 10, 1, 13, "# y")]) == "é = 'ü'  # y"


def test_an_empty_span_inserts_and_two_inserts_keep_their_order() -> None:
    edits = [SpanEdit(2, 1, 2, 1, "x = 0\n"), SpanEdit(2, 1, 2, 1, "y = 0\n")]
    assert apply_edits(TEXT, edits) == "a = 1\nx = 0\ny = 0\nbb = 22\nccc = 333\n"


def test_a_line_is_deleted_with_its_end() -> None:
    assert apply_edits(TEXT, [SpanEdit(2, 1, 3, 1, "")]) == "a = 1\nccc = 333\n"


def test_the_end_of_the_text_can_be_reached() -> None:
    assert apply_edits("x", [SpanEdit(1, 2, 1, 2, "!")]) == "x!"
    assert apply_edits("x\n", [SpanEdit(1, 1, 3, 1, "")]) == ""


def test_all_edits_refer_to_the_original_text() -> None:
    edits = [FindEdit("bb", "bbbb\nnew"), SpanEdit(3, 7, 3, 10, "0")]
    assert apply_edits(TEXT, edits) == "a = 1\nbbbb\nnew = 22\nccc = 0\n"


def test_windows_line_ends_are_kept() -> None:
    assert apply_edits("a\r\nb\r\n", [SpanEdit(2, 1, 2, 2, "c")]) == "a\r\nc\r\n"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (SpanEdit(9, 1, 9, 1, ""), "line 9, and the parent has 4 lines"),
        (SpanEdit(1, 7, 1, 7, ""), "column 7 of line 1, which has 5 characters"),
        (SpanEdit(0, 1, 1, 1, ""), "line 0"),
        (SpanEdit(1, 0, 1, 1, ""), "columns count from 1"),
        (SpanEdit(2, 1, 1, 1, ""), "ends before it begins"),
        (FindEdit("", "x"), "empty `find`"),
        (FindEdit("nothing", "x"), "copy it exactly"),
        (FindEdit(" = ", "x"), "stands 3 times, on lines 1, 2, 3"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(edit: SpanEdit | FindEdit, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        apply_edits(TEXT, [edit])


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(Misuse, match="edits 1 and 2 overlap"):
        apply_edits(TEXT, [SpanEdit(1, 1, 2, 3, ""), FindEdit("bb", "x")])


@given(text=st.text(alphabet="ab\né", max_size=40), data=st.data())
@settings(deadline=None)
def test_a_span_edit_equals_slicing(text: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    new = data.draw(st.text(alphabet="xy\n", max_size=5))

    def place(offset: int) -> tuple[int, int]:
        before = text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    assert apply_edits(text, [SpanEdit(*place(begin), *place(end), new)]) == text[:begin] + new + text[end:]

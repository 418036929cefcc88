"""Edits of a text: what fixes carry (`span`, `text`) and what people and agents write (`find`, `replace`), all at once.

All edits of one call refer to the same original text, in the order given, and must not overlap.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .misuse import Misuse

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class SpanEdit:
    """Replace the characters from (line, column) to (end_line, end_column), exclusive; all count from 1."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class FindEdit:
    """Replace the one place where `find` stands."""

    find: str
    replace: str


Edit = SpanEdit | FindEdit


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits made. Raises `Misuse` for a span outside the text, a `find` that is not unique, or edits that overlap."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    ranges = []
    for number, edit in enumerate(edits, 1):
        begin, end = _span_range(text, starts, edit, number) if isinstance(edit, SpanEdit) else _find_range(text, edit, number)
        ranges.append((begin, end, number, edit.text if isinstance(edit, SpanEdit) else edit.replace))
    ranges.sort(key=lambda r: r[:3])
    for before, after in itertools.pairwise(ranges):
        if after[0] < before[1]:
            raise Misuse(f"edits {before[2]} and {after[2]} overlap; send them as one edit or in two calls")
    pieces, position = [], 0
    for begin, end, _, replacement in ranges:
        pieces += [text[position:begin], replacement]
        position = end
    return "".join([*pieces, text[position:]])


def _span_range(text: str, starts: list[int], edit: SpanEdit, number: int) -> tuple[int, int]:
    begin = _offset(text, starts, edit.line, edit.column, f"edit {number} begins")
    end = _offset(text, starts, edit.end_line, edit.end_column, f"edit {number} ends")
    if end < begin:
        raise Misuse(f"edit {number} ends before it begins")
    return begin, end


def _offset(text: str, starts: list[int], line: int, column: int, what: str) -> int:
    if line == len(starts) + 1 and column == 1:
        return len(text)  # the end of the last line, counted as the start of the next
    if not 1 <= line <= len(starts):
        raise Misuse(f"{what} at line {line}, and the parent has {len(starts)} lines")
    rest = _LINE_END.search(text, starts[line - 1])
    length = (rest.start() if rest else len(text)) - starts[line - 1]
    if not 1 <= column <= length + 1:
        raise Misuse(f"{what} at column {column} of line {line}, which has {length} characters; columns count from 1")
    return starts[line - 1] + column - 1


def _find_range(text: str, edit: FindEdit, number: int) -> tuple[int, int]:
    if not edit.find:
        raise Misuse(f"edit {number} has an empty `find`")
    count = text.count(edit.find)
    if count == 1:
        begin = text.index(edit.find)
        return begin, begin + len(edit.find)
    if count == 0:
        raise Misuse(f"edit {number}: `find` is not in the parent's text; copy it exactly, with its indentation")
    lines = [text.count("\n", 0, match.start()) + 1 for match in re.finditer(re.escape(edit.find), text)]
    raise Misuse(f"edit {number}: `find` stands {count} times, on lines {', '.join(map(str, lines[:8]))}; add context until it is unique")

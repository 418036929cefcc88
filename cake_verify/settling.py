"""Where an edit that inserts statements may stand: at the edge of a statement, and in front of a whole `if`, not of one of its branches.

Rules know where an operation is written. An operation may be a part of a longer statement, and a line cannot go into the middle of one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from cake_ir.fault import Edit
from cake_ir.span import Span
from cake_verify.diagnostic import Diagnostic


def settled(d: Diagnostic, lines: Sequence[str]) -> Diagnostic:
    """A diagnostic whose fixes insert statements only where statements may stand."""
    if not any(_inserts(e) for f in d.fixes for e in f.edits):
        return d
    found = _statements(lines)
    return replace(d, fixes=tuple(replace(f, edits=tuple(_before_if(_at_edge(e, found), lines) for e in f.edits)) for f in d.fixes))


def _inserts(e: Edit) -> bool:
    """Whether an edit puts whole lines somewhere."""
    return e.span.start() == e.span.end() and e.span.line > 0 and "\n" in e.text


def _statements(lines: Sequence[str]) -> list[ast.stmt]:
    try:
        return [n for n in ast.walk(ast.parse("\n".join(lines))) if isinstance(n, ast.stmt)]
    except (SyntaxError, ValueError):
        return []


def _at_edge(e: Edit, statements: Sequence[ast.stmt]) -> Edit:
    """The edit at the start (end, where its text begins with a new line) of the statement in whose middle it would stand."""
    if not _inserts(e):
        return e
    at = (e.span.line, e.span.column - 1)
    inside = [n for n in statements if (n.lineno, n.col_offset) < at < (n.end_lineno or n.lineno, n.end_col_offset or 0)]
    if not inside:
        return e
    n = max(inside, key=lambda n: (n.lineno, n.col_offset))
    if isinstance(n, (ast.FunctionDef, ast.With)) or (hasattr(n, "body") and (e.text.startswith("\n") or at >= _head(n))):
        return e
    old, new = "\n" + " " * (e.span.column - 1), "\n" + " " * n.col_offset
    if e.text.startswith("\n"):
        pad = "\n" + " " * (len(e.text) - len(e.text.lstrip()) - 1)
        return Edit(Span(n.end_lineno or n.lineno, (n.end_col_offset or 0) + 1, n.end_lineno or n.lineno, (n.end_col_offset or 0) + 1), e.text.replace(pad, new))
    return Edit(Span(n.lineno, n.col_offset + 1, n.lineno, n.col_offset + 1), e.text.replace(old, new))


def _head(n: ast.stmt) -> tuple[int, int]:
    """Where the first statement inside a loop or branch begins."""
    first: ast.stmt = n.body[0]  # type: ignore[attr-defined]  # asked of statements with a body
    return first.lineno, first.col_offset


def _branch(e: Edit, lines: Sequence[str]) -> bool:
    """Whether an edit puts something in front of an `elif` or `else`."""
    s = e.span
    return s.start() == s.end() and e.text.endswith(" ") and 0 < s.line <= len(lines) and lines[s.line - 1][s.column - 1 :].startswith(("elif ", "else:"))


def _before_if(e: Edit, lines: Sequence[str]) -> Edit:
    if not _branch(e, lines):
        return e
    column = e.span.column
    line = next((n for n in range(e.span.line - 1, 0, -1) if lines[n - 1][: column - 1].strip() == "" and lines[n - 1][column - 1 :].startswith("if ")), e.span.line)
    return Edit(Span(line, column, line, column), e.text)


__all__ = ["settled"]

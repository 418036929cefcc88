"""A schedule's text taken apart for edits: its statements in their places, its declarations, and spans of nodes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from cake_ir.fault import Edit, Fix, Grade
from cake_ir.program import Program
from cake_ir.record import record
from cake_ir.span import Span
from cake_verify.proposals.placed import Placed, called, declarations, option, placed


@record()
class Proposal:
    """An edit that might mend something: what kind of edit, and how far from where the fault was seen (0 is there)."""

    kind: str
    edits: tuple[Edit, ...]
    title: str
    line: int
    rank: float = 0.0

    def fix(self, grade: Grade) -> Fix:
        return Fix(self.edits, grade, self.title)


_LONG, _AROUND = 600, 40
"""Statements of a schedule that is too long to be looked at as a whole, and how many lines around a place are looked at then."""


@dataclass
class Source:
    """One schedule: its text, syntax tree and program; `places` are the lines where something is wrong, `unused` a value that nobody uses."""

    text: str
    program: Program
    places: tuple[int, ...] = ()
    unused: str = ""
    lines: list[str] = field(init=False)
    function: ast.FunctionDef = field(init=False)

    def __post_init__(self) -> None:
        self.lines = self.text.split("\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the frontend has read the text already
            tree = ast.parse(self.text)
        found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == self.program.name]
        if not found:
            raise ValueError("the text does not hold the schedule")
        self.function = found[0]

    @cached_property
    def statements(self) -> list[Placed]:
        """Every statement of every role block in text order; of a very long schedule those around the places only."""
        out = placed(self.function, self.source)
        if len(out) > _LONG:
            out = [p for p in out if any(abs(p.line - line) <= _AROUND for line in self.places)]
        return out

    @cached_property
    def declarations(self) -> dict[str, ast.Call]:
        """The call that declares each name."""
        return declarations(self.function)

    def declared(self, kind: str) -> Iterator[tuple[str, ast.Call]]:
        """Declarations made by one call (`pipeline`, `barrier`, `view`, ..)."""
        return ((name, call) for name, call in self.declarations.items() if called(call) == kind)

    def of_role(self, role: str) -> list[Placed]:
        return [p for p in self.statements if p.role == role]

    # ------------------------------------------------------------ text and spans

    def source(self, node: ast.AST) -> str:
        """The text of a node (what `ast.get_source_segment` gives, without taking the whole text apart each time)."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1  # type: ignore[attr-defined]  # statements and expressions have places
        a, b = self._column(first + 1, node.col_offset) - 1, self._column(last + 1, node.end_col_offset) - 1  # type: ignore[attr-defined]  # located nodes only
        if first == last:
            return self.lines[first][a:b]
        return "\n".join([self.lines[first][a:], *self.lines[first + 1 : last], self.lines[last][:b]])

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1]
        return offset + 1 if text.isascii() else len(text.encode()[:offset].decode()) + 1

    def span(self, node: ast.AST) -> Span:
        """The span of a node; columns count characters from 1."""
        first, last = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]  # statements and expressions have places
        return Span(first, self._column(first, node.col_offset), last, self._column(last, node.end_col_offset))  # type: ignore[attr-defined]  # located nodes only

    # ------------------------------------------------------------ edits

    def replace(self, node: ast.AST, text: str) -> Edit:
        return Edit(self.span(node), text)

    def remove(self, node: ast.stmt) -> Edit:
        """Take a statement out; `pass` keeps its block valid."""
        return self.replace(node, "pass")

    def before(self, node: ast.stmt, text: str) -> Edit:
        """A statement in front of another one, indented like it."""
        span = self.span(node)
        return Edit(span.start(), text + "\n" + " " * (span.column - 1))

    def after(self, node: ast.stmt, text: str) -> Edit:
        """A statement behind another one, indented like it."""
        span = self.span(node)
        return Edit(span.end(), "\n" + " " * (span.column - 1) + text)

    def with_option(self, call: ast.Call, name: str, text: str) -> Edit:
        """A call with an option set."""
        given = option(call, name)
        if given is not None:
            return self.replace(given, text)
        end = self.span(call)
        at = Span(end.end_line, end.end_column - 1, end.end_line, end.end_column - 1)
        return Edit(at, f"{', ' if call.args or call.keywords else ''}{name}={text}")

    def without_option(self, call: ast.Call, name: str) -> Edit:
        """A call without an option."""
        parts = [self.source(a) for a in call.args] + [f"{k.arg}={self.source(k.value)}" for k in call.keywords if k.arg != name]
        return self.replace(call, f"{self.source(call.func)}({', '.join(parts)})")


def applied(text: str, edits: tuple[Edit, ...]) -> str:
    """A text with edits applied, last first, so that earlier places stay valid."""
    lines = text.split("\n")
    for e in sorted(edits, key=lambda e: (e.span.line, e.span.column), reverse=True):
        first, last = e.span.line - 1, e.span.end_line - 1
        head, tail = lines[first][: e.span.column - 1], lines[last][e.span.end_column - 1 :]
        lines[first : last + 1] = (head + e.text + tail).split("\n")
    return "\n".join(lines)


__all__ = ["Placed", "Proposal", "Source", "applied", "called", "option"]

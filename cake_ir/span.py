"""Where a construct came from: a half-open range of characters in the schedule's text."""

from __future__ import annotations

from cake_ir.record import record


@record(order=True)
class Span:
    """Lines and columns count characters from 1; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def to_json(self) -> dict[str, int]:
        return {"line": self.line, "column": self.column, "end_line": self.end_line, "end_column": self.end_column}

    @staticmethod
    def from_json(data: dict[str, int]) -> Span:
        return Span(data["line"], data["column"], data["end_line"], data["end_column"])

    def start(self) -> Span:
        """The empty span in front of this one: where an insertion goes."""
        return Span(self.line, self.column, self.line, self.column)

    def end(self) -> Span:
        """The empty span right behind this one."""
        return Span(self.end_line, self.end_column, self.end_line, self.end_column)


NOWHERE = Span(1, 1, 1, 1)
"""The span of things derived by Cake itself, which no line of the text states."""

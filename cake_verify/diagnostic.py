"""A finding as its readers get it: the JSON object of the verify contract, and text for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from cake_ir.fault import LEFT_OUT, Cause, Edit, Fault, Fix
from cake_ir.record import record
from cake_ir.span import Span

GATES: dict[str, str] = {
    "N": "construct", "H": "conformance", "D": "consistency", "S": "safety", "Q": "schedule", "P": "notes", "R": "distilled",
}  # fmt: skip
"""The gate that each code's letter stands for."""

INTERNAL = "N999"
"""The code of Cake's own failures."""


def gate_of(code: str) -> str:
    """The gate of a code; `internal` for Cake's own failures."""
    return "internal" if code == INTERNAL else GATES.get(code[:1], "construct")


@record()
class Diagnostic:
    """One finding: a fault with its gate, and the schedule and target that it was found in."""

    code: str
    gate: str
    severity: str
    message: str
    span: Span
    related: tuple[tuple[Span, str], ...] = ()
    trace: tuple[str, ...] = ()
    help: str = ""
    fixes: tuple[Fix, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    schedule: str | None = None
    target: str | None = None
    cause: Cause | None = None

    @staticmethod
    def from_fault(fault: Fault, schedule: str | None = None, target: str | None = None) -> Diagnostic:
        """Dress a fault up; its code says the gate. An edit with a part that is too long to be read is none."""
        fixes = tuple([f for f in fault.fixes if not any([LEFT_OUT in e.text for e in f.edits])])
        return Diagnostic(
            fault.code, gate_of(fault.code), fault.severity, fault.message, fault.span, fault.related, fault.trace, fault.help, fixes,
            fault.facts, schedule, target or None, fault.cause,
        )  # fmt: skip

    @property
    def key(self) -> tuple[str, Span, str]:
        """Two diagnostics with one key say the same."""
        return (self.code, self.span, self.message)

    def to_json(self) -> dict[str, Any]:
        """The contract's object. Lines and columns count characters from 1, ends are exclusive."""
        return {
            "code": self.code,
            "gate": self.gate,
            "severity": self.severity,
            "message": self.message,
            "span": self.span.to_json(),
            "related": [{"span": span.to_json(), "note": note} for span, note in self.related],
            "trace": list(self.trace),
            "help": self.help or None,
            "fixes": [fix_json(fix) for fix in self.fixes],
            "facts": {name: _plain(value) for name, value in self.facts.items()},
            "schedule": self.schedule,
            "target": self.target,
        }

    def to_text(self, lines: Sequence[str], filename: str = "<text>") -> str:
        """The finding with the lines of source that it points at; `lines` are the text's, in order."""
        out = [f"{self.severity}[{self.code}]: {self.message}"]
        width = len(str(max([self.span.line, *(span.line for span, _ in self.related)])))
        out.append(f"{' ' * width}--> {_visible(filename)}:{self.span.line}:{self.span.column}")
        out += _window(lines, width, self.span, self.related)
        out += [f"{' ' * width} = {'trace' if i == 0 else '     '}: {step}" for i, step in enumerate(self.trace)]
        if self.help:
            out.append(f"help: {self.help}")
        for fix in self.fixes[:2]:
            out += _fix_text(fix, lines, width)
        out.append(f"{' ' * width} = explain: {self.code}")
        return "\n".join(out)


def fix_json(fix: Fix) -> dict[str, Any]:
    """A fix of the contract: edits that belong together, their grade and title."""
    edits = [{"span": edit.span.to_json(), "text": edit.text} for edit in fix.edits]
    return {"edits": edits, "grade": fix.grade, "title": fix.title}


def _plain(value: Any) -> Any:
    """A fact as JSON holds it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return str(value)


# ------------------------------------------------------------------ source windows

_LONGEST = 160


def _visible(text: str) -> str:
    """Text without control characters, cut where it gets unreadable; one character a character."""
    return "".join(c if c.isprintable() else "·" for c in text[:_LONGEST])


def _marks(line: str, span: Span, mark: str) -> str:
    """`mark` under the span's characters on its first line."""
    end = span.end_column if span.end_line == span.line else len(line) + 1
    first = min(span.column, _LONGEST)
    return " " * (first - 1) + mark * max(1, min(end, _LONGEST) - first)


def _window(lines: Sequence[str], width: int, primary: Span, related: Sequence[tuple[Span, str]]) -> list[str]:
    """Source lines in text order, each with its marks; gaps are shown as `...`."""
    marked: dict[int, list[tuple[Span, str, str]]] = {primary.line: [(primary, "^", "")]}
    for span, note in related:
        marked.setdefault(span.line, []).append((span, "-", note))
    out, last = [f"{' ' * width} |"], None
    for number in sorted(marked):
        if last is not None and number > last + 1:
            out.append("...")
        last = number
        line = lines[number - 1] if 0 < number <= len(lines) else ""
        out.append(f"{number:>{width}} | {_visible(line)}")
        for span, mark, note in sorted(marked[number], key=lambda m: (m[1] != "^", m[0])):
            out.append(f"{' ' * width} | {_marks(line, span, mark)}{f' {note}' if note else ''}")
    return out


def _fix_text(fix: Fix, lines: Sequence[str], width: int) -> list[str]:
    """The lines as they are after the edits; several edits of one line give one line."""
    out = [f"fix: {fix.title or 'edit'}   [grade: {fix.grade}]"]
    together: dict[int, list[Edit]] = {}
    for edit in fix.edits:
        alone = edit.span.line != edit.span.end_line or "\n" in edit.text
        together.setdefault(-len(together) - 1 if alone else edit.span.line, []).append(edit)
    for edits in list(together.values())[:4]:
        span = edits[0].span
        line = lines[span.line - 1] if 0 < span.line <= len(lines) else ""
        last = lines[span.end_line - 1] if 0 < span.end_line <= len(lines) else ""
        if len(edits) == 1:
            new = line[: span.column - 1] + edits[0].text + last[span.end_column - 1 :]
        else:
            new = line
            for edit in sorted(edits, key=lambda e: e.span, reverse=True):
                new = new[: edit.span.column - 1] + edit.text + new[edit.span.end_column - 1 :]
        out += [f"{span.line + i:>{width}} + {_visible(part)}" for i, part in enumerate(new.split("\n")[:6])]
    return out

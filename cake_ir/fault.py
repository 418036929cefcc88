"""A located statement that something in a schedule is wrong, before any gate has dressed it up.

`cake_ir` raises and collects faults; `cake_verify` turns them into diagnostics. A fault carries everything that the
diagnostic contract needs, so that no information is lost on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from difflib import get_close_matches
from typing import Any, Literal

from cake_ir.record import record
from cake_ir.span import Span

LEFT_OUT = "\u2026"
"""Stands in a message for a part that is too long to be read; an edit that has it in it is none."""
Grade = Literal["certain", "likely", "idea"]
Severity = Literal["error", "warning", "note"]


@record()
class Edit:
    """Replace the text of `span` (an insertion where it is empty) by `text`."""

    span: Span
    text: str


@record()
class Fix:
    """Edits that mend a fault when applied together, and how sure that is."""

    edits: tuple[Edit, ...]
    grade: Grade
    title: str = ""


Cause = Literal["columns overwritten", "operand turned", "next sequence", "own copies", "copied behind the wait", "vector laid across", "no round", "slot of its own round"]
"""What of several mistakes with one code a fault is, where the edit that mends it depends on that; for those who look for edits, never printed."""


@record()
class Fault:
    """One thing that is wrong: `code` is one letter for the gate and three digits, stable for ever."""

    code: str
    message: str
    span: Span
    related: tuple[tuple[Span, str], ...] = ()
    help: str = ""
    fixes: tuple[Fix, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    trace: tuple[str, ...] = ()
    severity: Severity = "error"
    cause: Cause | None = None


class FaultError(Exception):
    """Raised where elaboration cannot go on past a fault; always caught inside `cake_ir`'s public functions."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, if any is near enough to be what was meant."""
    close = get_close_matches(name[:80], list(known)[:500], n=1, cutoff=0.55)
    return close[0] if close else None


def did_you_mean(name: str, known: Iterable[str], what: str) -> str:
    """A help sentence that offers the nearest name, else lists what is declared (at most eight)."""
    known = list(known)
    close = nearest(name, known)
    if close:
        return f"did you mean `{close}`?"
    if not known:
        return f"no {what} is declared"
    shown = ", ".join(f"`{k}`" for k in known[:8])
    return f"{what}s here: {shown}" + (" .." if len(known) > 8 else "")

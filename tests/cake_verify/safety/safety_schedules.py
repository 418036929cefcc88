"""The six example schedules and their deliberate faults, and what tests do with texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cake_ir import parse, specialise
from cake_ir.fault import Fault, Fix
from cake_ir.program import Program
from cake_verify.analyses.safety import SafetyResult, check

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("gemm_ws", "fmha_fwd", "kmeans_assign", "kda_inter", "rmsnorm", "gemm_sm80")


def text(name: str, *edits: tuple[str, str]) -> str:
    """An example's text with replacements, each of which has to fit exactly once."""
    out = (EXAMPLES / f"{name}.py").read_text()
    for old, new in edits:
        assert out.count(old) == 1, (name, old, out.count(old))
        out = out.replace(old, new)
    return out


def program(source: str, target: str | None = None, **params: Any) -> Program:
    """The specialised program of a text without faults."""
    module = parse(source, "test")
    assert not module.faults, [f.message for f in module.faults]
    done = specialise(module.schedules[0], params or None, target)
    assert done.program is not None, [f.message for f in done.faults]
    return done.program


def verdict(source: str, target: str | None = None, **params: Any) -> SafetyResult:
    """The safety gate's answer on a text."""
    return check(program(source, target, **params))


def apply(source: str, fix: Fix) -> str:
    """A text with a fix's edits made."""
    lines = source.split("\n")
    for edit in sorted(fix.edits, key=lambda e: (e.span.line, e.span.column), reverse=True):
        s = edit.span
        head, tail = lines[s.line - 1][: s.column - 1], lines[s.end_line - 1][s.end_column - 1 :]
        lines[s.line - 1 : s.end_line] = (head + edit.text + tail).split("\n")
    return "\n".join(lines)


def line_of(source: str, needle: str) -> int:
    """The number of the first line that contains `needle`."""
    return next(i for i, row in enumerate(source.split("\n"), 1) if needle in row)


def first(result: SafetyResult) -> Fault:
    """The first fault, which has to exist."""
    assert result.faults
    return result.faults[0]

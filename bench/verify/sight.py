"""What the verifier says about a text, reduced to what the benchmark measures, and the first repair it offers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bench.verify.cases import CASES
from cake_ir.fault import Edit
from cake_ir.span import Span
from cake_verify import Verdict, verify_text
from cake_verify.proposals import applied


def verdict_of(text: str, name: str, best_of: int = 1) -> tuple[Verdict, float]:
    """The verdict on a text under its case's tunables, and the milliseconds from text to verdict, the least of several runs."""
    case = CASES[name]
    least = float("inf")
    for _ in range(best_of):
        started = time.perf_counter()
        verdict = verify_text(text, params=case.params, target=case.target, outputs=case.outputs(), filename=case.file)
        least = min(least, (time.perf_counter() - started) * 1e3)
    return verdict, least


def seen(verdict: Verdict) -> list[dict[str, Any]]:
    """The shown errors: code, gate, message, lines of the primary and related spans, the role named, and graded fixes."""
    out = []
    for d in verdict.shown():
        if d.severity != "error":
            continue
        fixes = [
            {"grade": f.grade, "title": f.title, "edits": [[e.span.line, e.span.column, e.span.end_line, e.span.end_column, e.text] for e in f.edits]}
            for f in d.fixes
        ]
        out.append(
            {
                "code": d.code,
                "gate": d.gate,
                "message": d.message,
                "lines": [d.span.line, d.span.end_line],
                "related": [[span.line, span.end_line] for span, _ in d.related],
                "role": d.facts.get("role"),
                "fixes": fixes,
            }
        )
    return out


def repaired(text: str, errors: Sequence[dict[str, Any]]) -> str | None:
    """The text after the first `certain` or `likely` fix that the shown errors carry; None if none does."""
    for e in errors:
        for fix in e["fixes"]:
            if fix["grade"] in ("certain", "likely"):
                return applied(text, tuple(Edit(Span(*edit[:4]), edit[4]) for edit in fix["edits"]))
    return None


def searched(text: str, name: str) -> str | None:
    """The text after the first edit that the repair search finds; None if it finds none."""
    case = CASES[name]
    verdict = verify_text(text, params=case.params, target=case.target, outputs=case.outputs(), filename=case.file, repair=True)
    if verdict.repairs is None or not verdict.repairs.fixes:
        return None
    return applied(text, verdict.repairs.fixes[0].edits)

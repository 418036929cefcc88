"""The bounded repair search: small edits near a fault, each verified again; what passes is offered, and said to be no more than that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cake_ir.fault import Fix
from cake_ir.program import Program
from cake_ir.span import Span
from cake_verify.diagnostic import Diagnostic
from cake_verify.proposals import Proposal, applied, propose, suggested
from cake_verify.verdict import Verdict

SECONDS = 2.0
"""Processor time that one search may take."""

AFTER = 0.3
"""Processor time that is spent on further edits once one has been found."""

MOST = 3
"""Edits that are offered."""

NOTE = "verified again, not checked for what it computes"
"""What every title of a found edit ends with."""

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Repairs:
    """What a search found: edits that verify, how many it tried, and whether it ran out of time."""

    fixes: tuple[Fix, ...]
    tried: int
    seconds: float
    exhausted: bool


def search(text: str, program: Program, errors: Sequence[Diagnostic], passes: Check, *, seconds: float = SECONDS, most: int = MOST) -> Repairs:
    """Edits of `text` under which `passes` holds; the fixes of the faults themselves are tried first."""
    started = time.process_time()
    own = [Proposal("fix", f.edits, f.title, e.span.line) for e in errors[:3] for f in e.fixes]
    try:
        proposals = [*own, *propose(text, program, errors)]
    except (SyntaxError, ValueError):
        proposals = own
    found: list[Fix] = []
    seen = {text}
    tried = 0
    late = False
    for p in proposals:
        if len(found) >= most:
            break
        if time.process_time() - started > seconds:
            late = True
            break
        new = applied(text, p.edits)
        if new in seen:
            continue
        seen.add(new)
        tried += 1
        if passes(new):
            if not found:  # one is what counts: others are worth only a little more time
                seconds = min(seconds, time.process_time() - started + AFTER)
            found.append(Fix(p.edits, "likely" if not found else "idea", f"{p.title} ({NOTE})"))
    return Repairs(tuple(found), tried, time.process_time() - started, not late)


def of_verdict(text: str, verdict: Verdict, programs: Mapping[str, Program], params: Mapping[str, Any] | None, target: str | None, default_target: str | None,
               schedule: str | None, seconds: float) -> Verdict:  # fmt: skip
    """A failing verdict with the edits that a search found; it stays as it is where no program came out of the text."""
    from cake_verify.gates import verify_text  # the search and the gates call each other

    errors = verdict.errors
    program = programs.get(errors[0].schedule or "") if errors else None
    if program is None:
        return verdict

    def passes(new: str) -> bool:
        return verify_text(new, params=params, target=target, default_target=default_target, schedule=schedule, filename=verdict.file, suggest=False).verdict == "pass"

    found = search(text, program, [e for e in errors if e.schedule == errors[0].schedule], passes, seconds=seconds)
    facts = {"repairs_tried": found.tried, "repairs_found": len(found.fixes), "repairs_exhausted": found.exhausted}
    diagnostics = repaired(verdict.diagnostics, found.fixes)
    first = next(i for i, d in enumerate(diagnostics) if d.severity == "error")
    diagnostics[first] = _with_place(replace(diagnostics[first], facts=diagnostics[first].facts | facts), text)
    return replace(verdict, diagnostics=tuple(diagnostics), elapsed_ms=verdict.elapsed_ms + found.seconds * 1e3)


def with_suggestion(text: str, verdict: Verdict, programs: Mapping[str, Program]) -> Verdict:
    """A failing verdict whose first error has an edit in front that comes from the text around it, where its rule brings none as good.

    Where the edit would go is one of the places that the error names.
    """
    started = time.perf_counter()
    errors = verdict.errors
    program = programs.get(errors[0].schedule or "") if errors else None
    if program is None:
        return verdict
    fix = suggested(text, program, [e for e in errors if e.schedule == errors[0].schedule])
    out = list(verdict.diagnostics)
    i = next(i for i, d in enumerate(out) if d.severity == "error")
    if fix is not None:
        out[i] = replace(out[i], fixes=(fix, *out[i].fixes) if fix.grade != "idea" else (*out[i].fixes, fix))
    out[i] = _with_place(out[i], text)
    return replace(verdict, diagnostics=tuple(out), elapsed_ms=verdict.elapsed_ms + (time.perf_counter() - started) * 1e3)


_NAMED = 2
"""Related places that stay in front of the one where an edit would go."""


def _with_place(d: Diagnostic, text: str) -> Diagnostic:
    """A diagnostic that also names the line where its first fix would change something."""
    fix = next((f for f in d.fixes if f.grade != "idea"), None)
    if fix is None or not fix.edits:
        return d
    lines = text.split("\n")
    line = fix.edits[0].span.line
    known = [d.span, *(span for span, _ in d.related[: _NAMED + 1])]
    if not 0 < line <= len(lines) or any(span.line <= line <= span.end_line for span in known):
        return d
    row = lines[line - 1]
    place = Span(line, len(row) - len(row.lstrip()) + 1, line, len(row.rstrip()) + 1)
    return replace(d, related=(*d.related[:_NAMED], (place, "the first fix goes here"), *d.related[_NAMED:]))


def repaired(found: Sequence[Diagnostic], fixes: tuple[Fix, ...]) -> list[Diagnostic]:
    """The diagnostics with what a search found in front of the first error's own fixes, which become ideas."""
    out = list(found)
    for i, d in enumerate(out):
        if d.severity == "error":
            kept = tuple(replace(f, grade="idea") for f in d.fixes if all(f.edits != g.edits for g in fixes)) if fixes else d.fixes
            out[i] = replace(d, fixes=(*fixes, *kept))
            break
    return out

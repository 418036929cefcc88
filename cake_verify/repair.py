"""The bounded repair search: small edits near a fault, each verified again; what passes is offered, and said to be no more than that."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from cake_ir.fault import Edit, Fix
from cake_ir.program import Program
from cake_ir.span import Span
from cake_verify.diagnostic import Diagnostic
from cake_verify.proposals import Proposal, applied, propose, suggested
from cake_verify.repair_chain import chained
from cake_verify.settling import settled
from cake_verify.spelling import spelled
from cake_verify.verdict import Repairs, Verdict

SECONDS = 2.0
"""Processor time of this thread that one search may take; a wait for the processor may make it at most `WALL` times as long."""

WALL = 4.0

AFTER = 0.3
"""Processor time that is spent on further edits once one has been found."""

TRIES = 1_500
"""Texts that one search verifies at most."""

WORK = 40_000
"""Operations that the safety gate walks for one of them."""

MOST = 3
"""Edits that are offered."""

NOTE = "verified again, not checked for what it computes"
"""What every title of a found edit ends with."""

Check = Callable[[str], bool]


class _Clock:
    """How long a search has run: processor time of its own thread, since others may be at work beside it, and an end on the wall."""

    def __init__(self, seconds: float) -> None:
        self._cpu, self._wall, self.seconds = time.thread_time(), time.monotonic(), seconds

    @property
    def spent(self) -> float:
        return time.thread_time() - self._cpu

    def over(self) -> bool:
        return self.spent > self.seconds or time.monotonic() - self._wall > WALL * self.seconds


def search(text: str, program: Program | None, errors: Sequence[Diagnostic], passes: Check, *, seconds: float = SECONDS, most: int = MOST,
           chain: Callable[[Callable[[], bool]], Proposal | None] | None = None) -> Repairs:  # fmt: skip
    """Edits of `text` under which `passes` holds; the fixes of the faults themselves are tried first, and are all where there is no program.

    `chain` looks for several edits in a row once the likeliest single ones have failed.
    """
    clock = _Clock(seconds)
    proposals: list[Proposal | None] = [*_together(errors), *(Proposal("fix", f.edits, f.title, e.span.line) for e in errors[:_OWN] for f in e.fixes)]
    if program is not None:
        with contextlib.suppress(SyntaxError, ValueError):
            proposals += propose(text, program, [e for e in errors if e.schedule == errors[0].schedule])
    if chain is not None:
        proposals.insert(len(errors) + _SINGLE, None)  # where the chain has its turn
    found: list[Fix] = []
    seen = {text}
    stopped: Literal["found", "exhausted", "limit"] = "exhausted"
    for p in proposals:
        if len(found) >= most:
            stopped = "found"
            break
        if clock.over() or len(seen) > TRIES:
            stopped = "found" if found else "limit"
            break
        if p is None:
            p = chain(clock.over) if chain is not None and not found else None
            if p is None:
                continue
        new = applied(text, p.edits)
        if new in seen:
            continue
        seen.add(new)
        if passes(new):
            if not found:  # one is what counts: others are worth only a little more time
                clock.seconds = min(clock.seconds, clock.spent + AFTER)
            found.append(Fix(p.edits, "likely" if not found else "idea", f"{p.title} ({NOTE})"))
    return Repairs(tuple(found), len(seen) - 1, clock.spent, stopped)


_SINGLE = 60
"""Single edits that are tried before several in a row."""

_OWN = 5
"""Errors whose own fixes are tried."""


def _together(errors: Sequence[Diagnostic]) -> list[Proposal]:
    """The first fix of each error in one edit, where several have one: faults that have nothing to do with each other."""
    chosen: list[Edit] = []
    for e in errors[: 4 * _OWN]:
        fix = next((f for f in e.fixes if f.grade != "idea"), None)
        if fix is not None and not any(_touch(a, b) for a in fix.edits for b in chosen):
            chosen += fix.edits
    whole = len(errors) > 1 and len({e.span.line for e in chosen}) > 1
    return [Proposal("fix", tuple(chosen), "the first fix of each error", errors[0].span.line)] if whole else []


def _touch(a: Edit, b: Edit) -> bool:
    return a.span.start() <= b.span.end() and b.span.start() <= a.span.end()


def of_verdict(text: str, verdict: Verdict, programs: Mapping[str, Program], verify: Callable[..., Verdict], accept: Check | None, seconds: float) -> Verdict:
    """A failing verdict with the edits that a search found.

    `verify` asks the same question about another text; `accept` is a further condition on texts that pass.
    """
    errors = verdict.errors
    program = programs.get(errors[0].schedule or "")

    def passes(new: str) -> bool:
        return verify(new).verdict == "pass" and (accept is None or accept(new))

    found = search(text, program, errors, passes, seconds=seconds, chain=lambda over: chained(text, verdict, partial(verify, suggest=True), over))
    diagnostics = repaired(verdict.diagnostics, found.fixes)
    first = next(i for i, d in enumerate(diagnostics) if d.severity == "error")
    diagnostics[first] = _with_place(diagnostics[first], text)
    return replace(verdict, diagnostics=tuple(diagnostics), elapsed_ms=verdict.elapsed_ms + found.seconds * 1e3, repairs=found)


def with_suggestion(text: str, verdict: Verdict, programs: Mapping[str, Program]) -> Verdict:
    """A failing verdict whose first error has an edit in front that comes from the text around it, where its rule brings none as good.

    Where the edit would go is one of the places that the error names.
    """
    started = time.perf_counter()
    if any("did you mean" in d.help for d in verdict.diagnostics):
        verdict = replace(verdict, diagnostics=tuple(spelled(d, verdict.lines) for d in verdict.diagnostics))
    errors = verdict.errors
    program = programs.get(errors[0].schedule or "") if errors else None
    if program is None:
        return verdict
    errors = tuple(settled(e, verdict.lines) for e in errors)
    fix = suggested(text, program, [e for e in errors if e.schedule == errors[0].schedule])
    out = [settled(d, verdict.lines) for d in verdict.diagnostics]
    i = next(i for i, d in enumerate(out) if d.severity == "error")
    if fix is not None:
        others = tuple(f for f in out[i].fixes if not _one_fix(f, fix))
        out[i] = replace(out[i], fixes=(fix, *others) if fix.grade != "idea" or len(others) < len(out[i].fixes) else (*others, fix))
    out[i] = _with_place(out[i], text)
    return replace(verdict, diagnostics=tuple(out), elapsed_ms=verdict.elapsed_ms + (time.perf_counter() - started) * 1e3)


def _one_fix(a: Fix, b: Fix) -> bool:
    """Whether two fixes make the same text, whatever they are called; lines that are put in may stand on either side of a line's end."""
    if {(e.span.start(), e.span.end(), e.text) for e in a.edits} == {(e.span.start(), e.span.end(), e.text) for e in b.edits}:
        return True
    return a.title == b.title and {(e.span.line, e.text.strip()) for e in a.edits} == {(e.span.line, e.text.strip()) for e in b.edits}


MEETINGS = 0.2
"""Processor time for the meetings at one barrier that are all missing."""


def with_meetings(text: str, verdict: Verdict, programs: Mapping[str, Program], verify: Callable[..., Verdict]) -> Verdict:
    """A failing verdict whose first fix lets the threads meet wherever they have to, where they come to a declared barrier nowhere.

    One meeting would only show the next one that is missing.
    """
    first = verdict.errors[0] if verdict.errors else None
    program = programs.get(first.schedule or "") if first is not None else None
    fix = next((f for f in first.fixes if f.grade != "idea"), None) if first is not None else None
    if first is None or program is None or fix is None or len(fix.edits) != 1:
        return verdict
    barrier = fix.edits[0].text.strip().removeprefix("lm.sync(").removesuffix(")")
    if barrier not in program.named or fix.edits[0].text.strip() != f"lm.sync({barrier})" or any(barrier in (op.attrs.get("barrier"), op.attrs.get("sync")) for op in program.ops):
        return verdict
    clock = _Clock(MEETINGS)
    found = chained(text, verdict, partial(verify, suggest=True), clock.over)
    if found is None:
        return verdict
    out = list(verdict.diagnostics)
    i = next(i for i, d in enumerate(out) if d.severity == "error")
    out[i] = replace(out[i], fixes=(found.fix("likely"), *out[i].fixes))
    return replace(verdict, diagnostics=tuple(out), elapsed_ms=verdict.elapsed_ms + clock.spent * 1e3)


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

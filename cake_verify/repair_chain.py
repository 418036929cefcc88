"""Several faults mended one after the other: each time the first fix of the first error, as long as that makes the error go."""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher

from cake_ir.fault import Edit
from cake_ir.span import Span
from cake_verify.proposals import Proposal, applied
from cake_verify.verdict import Verdict

STEPS = 5
"""Fixes that one chain applies at most."""


def chained(text: str, verdict: Verdict, verify: Callable[[str], Verdict], over: Callable[[], bool]) -> Proposal | None:
    """The edits of two to five fixes in a row under which `text` verifies, as one; None where a fix does not remove its error.

    Each is the fix of the first error that has one.
    """
    new, titles, seen = text, [], {text}
    line = verdict.errors[0].span.line
    while len(titles) < STEPS and not over():
        first, fix = next(((e, f) for e in verdict.errors for f in e.fixes if f.grade != "idea"), (None, None))
        if first is None or fix is None:
            return None
        new = applied(new, fix.edits)
        if new in seen:
            return None
        seen.add(new)
        titles.append(fix.title)
        verdict = verify(new)
        if verdict.verdict == "pass":
            return Proposal("chain", difference(text, new), f"{len(titles)} edits: {'; '.join(titles)}", line) if len(titles) > 1 else None
        if verdict.verdict != "fail" or any((e.code, e.message) == (first.code, first.message) for e in verdict.errors):
            return None
    return None


def difference(old: str, new: str) -> tuple[Edit, ...]:
    """Edits by whole lines that make one text of another."""
    before, after = old.split("\n"), new.split("\n")
    out = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if a == b and a < len(before):
            out.append(Edit(Span(a + 1, 1, a + 1, 1), "\n".join(after[c:d]) + "\n"))
        elif a == b:
            out.append(Edit(Span(a, len(before[a - 1]) + 1, a, len(before[a - 1]) + 1), "\n" + "\n".join(after[c:d])))
        elif c == d and b < len(before):
            out.append(Edit(Span(a + 1, 1, b + 1, 1), ""))
        elif c == d and a > 0:
            out.append(Edit(Span(a, len(before[a - 1]) + 1, b, len(before[b - 1]) + 1), ""))
        else:
            out.append(Edit(Span(a + 1, 1, b, len(before[b - 1]) + 1), "\n".join(after[c:d])))
    return tuple(out)

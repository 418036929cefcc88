"""The answer of the gates: what was found in one text, in the order in which a reader should see it."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from cake_ir.fault import Fix
from cake_ir.record import record
from cake_verify.diagnostic import Diagnostic, fix_json

Outcome = Literal["pass", "fail", "undecided"]

MAX_ERRORS = 5
"""Errors that are shown; the rest are counted, since later ones are often consequences."""

_BEFORE = {"consistency": "conformance", "schedule": "safety"}
"""Gates whose errors on a line are consequences of another gate's errors on that line."""

_SEVERITY = {"error": 0, "warning": 1, "note": 2}


UNCHECKED = "each edit was applied and verified again; none was checked for what the kernel computes"
"""What goes with every edit that a search found."""


@record()
class Repairs:
    """What a repair search found: edits that verify, how many texts it verified, and why it stopped.

    `stopped` is `found` (enough edits), `exhausted` (nothing is left to try) or `limit` (of time or of tries).
    """

    fixes: tuple[Fix, ...]
    tried: int
    seconds: float
    stopped: Literal["found", "exhausted", "limit"]

    def to_json(self) -> dict[str, Any]:
        """A JSON value; what was found comes with what was not looked at."""
        return {
            "fixes": [fix_json(fix) for fix in self.fixes],
            "tried": self.tried,
            "stopped": self.stopped,
            "elapsed_ms": round(self.seconds * 1e3, 3),
            "caveat": UNCHECKED,
        }

    def to_text(self) -> str:
        """One line for people."""
        end = {"found": "", "exhausted": ", nothing left to try", "limit": ", stopped at its limit"}[self.stopped]
        tried = f"{self.tried} edit{'' if self.tried == 1 else 's'}"
        found = f"{len(self.fixes)} of {tried} make it verify" if self.fixes else f"none of {tried} makes it verify"
        return f"repair search: {found} ({self.seconds * 1e3:.0f} ms{end})" + (f"; {UNCHECKED}" if self.fixes else "")


@record()
class Verdict:
    """`diagnostics` holds everything found, errors first and in gate order; `to_json` and `to_text` show at most five errors.

    `target` and `schedule` are those of the first schedule; `schedules` lists all that were looked at. `repairs` is there where a search
    was asked for and the verdict is fail.
    """

    file: str
    verdict: Outcome
    diagnostics: tuple[Diagnostic, ...]
    elapsed_ms: float
    target: str | None = None
    schedule: str | None = None
    schedules: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    lines: tuple[str, ...] = field(default=(), repr=False)
    repairs: Repairs | None = None

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")

    def shown(self, limit: int | None = MAX_ERRORS) -> tuple[Diagnostic, ...]:
        """The diagnostics without the errors past `limit` (all of them where it is None)."""
        if limit is None:
            return self.diagnostics
        room, out = limit, []
        for d in self.diagnostics:
            if d.severity == "error":
                room -= 1
            if room >= 0 or d.severity != "error":
                out.append(d)
        return tuple(out)

    def to_json(self, limit: int | None = MAX_ERRORS) -> dict[str, Any]:
        """The verify contract's object; `more_errors` counts the errors that are not shown."""
        shown = self.shown(limit)
        return {
            "file": self.file,
            "verdict": self.verdict,
            "diagnostics": [d.to_json() for d in shown],
            "elapsed_ms": round(self.elapsed_ms, 3),
            "target": self.target,
            "schedule": self.schedule,
            "schedules": list(self.schedules),
            "more_errors": len(self.diagnostics) - len(shown),
            **({"repair": self.repairs.to_json()} if self.repairs is not None else {}),
        }

    def to_text(self, limit: int | None = MAX_ERRORS) -> str:
        """The findings for people, then one line that sums them up."""
        shown = self.shown(limit)
        blocks = [d.to_text(self.lines, self.file) for d in shown]
        counts = [sum(d.severity == s for d in self.diagnostics) for s in _SEVERITY]
        words = [f"{n} {s}{'' if n == 1 else 's'}" for n, s in zip(counts, _SEVERITY, strict=True) if n]
        hidden = len(self.diagnostics) - len(shown)
        more = f" ({hidden} more errors not shown)" if hidden else ""
        for_target = f" for {self.target}" if self.target else ""
        if self.repairs is not None:
            blocks.append(self.repairs.to_text())
        blocks.append(f"{self.file}: {self.verdict}{for_target}: {', '.join(words) or 'nothing to report'}{more} ({self.elapsed_ms:.1f} ms)")
        return "\n\n".join(blocks)


def ordered(found: list[Diagnostic], gate_order: tuple[str, ...]) -> tuple[Diagnostic, ...]:
    """Errors before warnings before notes, each in gate order and then text order; duplicates and consequences removed.

    Where two gates that look at one thing in turn both find an error on a line, the later one's follows from the earlier one's; so does
    what the schedule gate says of an operation that a finding of the safety gate is about.
    """
    rank = {gate: i for i, gate in enumerate(gate_order)}
    unique = list({d.key: d for d in reversed(found)}.values())
    lines = {(d.gate, d.span.line) for d in unique if d.severity == "error"}
    lines |= {("safety", span.line) for d in unique if d.severity == "error" and d.gate == "safety" for span, _ in d.related}
    unique = [d for d in unique if d.severity != "error" or (_BEFORE.get(d.gate), d.span.line) not in lines]
    return tuple(sorted(unique, key=lambda d: (_SEVERITY.get(d.severity, 3), rank.get(d.gate, len(rank)), d.span)))

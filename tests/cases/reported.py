"""A reported failure as test material: bad inputs with the code that catches each, and controls next to them that must stay accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cake_verify import verify_text
from cake_verify.verdict import Verdict

Outcome = Literal["caught", "derived", "no such construct", "result", "missed"]
"""What became of the bad input.

`caught`: a schedule can say it, and a rule refuses it. `derived`: nobody writes it, Cake derives it, and a test holds what it derives.
`no such construct`: the language has no way to say it, the nearest spelling is refused by the parser. `result`: the report asks for a
stated result instead of an error. `missed`: it passes, or is not decided; the remark says why.
"""


@dataclass(frozen=True, slots=True)
class Bad:
    """A text with one fault: the code of its only error, and a piece of the line that the error points at."""

    text: str
    code: str
    at: str
    target: str | None = None

    @property
    def lines(self) -> list[int]:
        """The lines, from 1, in which `at` stands."""
        return [n for n, line in enumerate(self.text.split("\n"), 1) if self.at in line]


@dataclass(frozen=True, slots=True)
class Good:
    """A near-by text that must pass without an error or a doubt."""

    text: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One reported case. `source` is the public report, `fault` and `near` say in words what the bad input does and the control does instead."""

    number: str
    gate: str
    source: str
    fault: str
    near: str
    bad: tuple[Bad, ...]
    good: tuple[Good, ...]
    outcome: Outcome = "caught"
    remark: str = ""

    def __str__(self) -> str:
        return self.number


def edit(text: str, *changes: tuple[str, str]) -> str:
    """`text` with each (old, new) applied once; raises `ValueError` where `old` does not stand in it exactly once."""
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} stands {text.count(old)} times in the text")
        text = text.replace(old, new)
    return text


def errors(verdict: Verdict) -> list[tuple[str, int, str]]:
    """Code, line and message of every error."""
    return [(d.code, d.span.line, d.message) for d in verdict.errors]


def check_bad(bad: Bad) -> None:
    """The fault is found once, by its rule, on its line."""
    verdict = verify_text(bad.text, target=bad.target)
    found = errors(verdict)
    assert verdict.verdict == "fail", [(d.code, d.message) for d in verdict.diagnostics]
    assert [code for code, _, _ in found] == [bad.code], found
    assert found[0][1] in bad.lines, (found, bad.lines)
    assert verdict.errors[0].help, "the error says no next step"


def check_good(good: Good) -> None:
    """The control passes: no error, and nothing left open."""
    verdict = verify_text(good.text, target=good.target)
    assert (verdict.verdict, errors(verdict)) == ("pass", []), [(d.code, d.message) for d in verdict.diagnostics]

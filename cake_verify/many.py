"""Many candidates in one call: each text is read once, each question is answered once, and no candidate takes more than its share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from cake_ir.frontend import Module, parse
from cake_ir.record import record
from cake_verify.gates import verify_text
from cake_verify.verdict import Verdict

WORK = 40_000
"""Operations that the safety gate walks for one of many candidates; a schedule needs a few thousand."""


@record()
class Question:
    """One candidate: a text, values for its tunables, and what to verify it for (as `verify_text` takes them)."""

    text: str
    params: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None
    schedule: str | None = None
    filename: str = "<text>"


def verify_many(questions: Iterable[Question], *, default_target: str | None = None, strict: bool = False, work: int = WORK) -> list[Verdict]:
    """The verdicts on many candidates, in order. A candidate that needs more than `work` is undecided, and says so; none keeps the others.

    Texts that occur several times are parsed once, questions that occur several times are answered once.
    """
    modules: dict[tuple[str, str], Module | None] = {}
    answers: dict[tuple[Any, ...], Verdict] = {}
    out = []
    for q in questions:
        read = (q.text, q.filename)
        key = (*read, tuple(sorted((k, repr(v)) for k, v in q.params.items())), q.target, q.schedule)
        if key not in answers:
            if read not in modules:
                modules[read] = _parsed(q)
            answers[key] = verify_text(q.text, params=q.params, target=q.target, default_target=default_target, schedule=q.schedule, filename=q.filename,
                                       strict=strict, work=work, module=modules[read])  # fmt: skip
        out.append(answers[key])
    return out


def _parsed(q: Question) -> Module | None:
    """The text read; None where reading it fails, which is then said by its verdict."""
    try:
        return parse(q.text, q.filename)
    except Exception:  # the process boundary of the verifier is in `verify_text`, which meets the same failure and reports it
        return None

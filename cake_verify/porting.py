"""On which targets a text would run, why not on the others, and the smallest change where there is one: all gates for each of the seven."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from cake_ir.fault import Edit
from cake_ir.frontend import Module, parse
from cake_ir.record import record
from cake_ir.targets import TARGETS
from cake_verify.diagnostic import Diagnostic
from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.verdict import Verdict

ROUNDS = 4
"""How often the fixes of what is then found are added, until nothing is."""
SECONDS = 1.0
"""Processor time that looking for changes may take on one target."""


@record()
class Change:
    """What makes a target accept the text: edits of it, or other values of tunables; verified again on that target, not checked for speed."""

    edits: tuple[Edit, ...] = ()
    params: Mapping[str, int] = field(default_factory=dict)
    titles: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        edits = [{"span": e.span.to_json(), "text": e.text} for e in self.edits]
        return {"title": "; ".join(self.titles), "edits": edits, "params": dict(self.params), "verified": True}


@record()
class Port:
    """One target's answer; `change` is there only where the verdict is fail."""

    target: str
    verdict: Verdict
    change: Change | None = None

    @property
    def why(self) -> tuple[str, ...]:
        """What stands against it, one sentence a cause."""
        return tuple(dict.fromkeys(f"line {d.span.line}: [{d.code}] {d.message}" for d in _blocking(self.verdict)))[:5]

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict.verdict, "why": list(self.why), "diagnostics": [d.to_json() for d in _blocking(self.verdict)],
            "change": self.change.to_json() if self.change else None,
        }  # fmt: skip


def portability(text: str, *, params: Mapping[str, Any] | None = None, filename: str = "<text>", targets: Sequence[str] = TARGETS) -> dict[str, dict[str, Any]]:
    """By target: `verdict` (pass, fail or undecided), `why` in sentences, the `diagnostics` behind it, and `change`: edits or values of
    tunables under which that target passes, or None."""
    return {p.target: p.to_json() for p in ports(text, params=params, filename=filename, targets=targets)}


def ports(text: str, *, params: Mapping[str, Any] | None = None, filename: str = "<text>", targets: Sequence[str] = TARGETS, change: bool = True) -> list[Port]:
    """The answer of each target, in the order asked; without `change` no change is looked for."""
    given = dict(params or {})
    try:
        module: Module | None = parse(text, filename)
    except Exception:  # `verify_text` meets the same failure and reports it
        module = None
    out = []
    for name in targets:
        verdict = verify_text(text, params=given, target=name, filename=filename, suggest=False, module=module)
        found = _change(text, module, verdict, given, name) if change and module is not None and verdict.verdict == "fail" else None
        out.append(Port(name, verdict, found))
    return out


def lines(found: Sequence[Port], filename: str) -> list[str]:
    """The report for people: a line a target, what stands against it below, and the change."""
    good = [p.target for p in found if p.verdict.verdict == "pass"]
    out = [f"{filename}: passes for {', '.join(good) or 'none'} of {len(found)} target{'' if len(found) == 1 else 's'}"]
    for p in found:
        out.append(f"  {p.target:<8} {p.verdict.verdict}")
        out += [f"           {why}" for why in p.why]
        if p.change is not None:
            where = sorted({e.span.line for e in p.change.edits})
            at = f" (line{'' if len(where) == 1 else 's'} {', '.join(map(str, where))})" if where else ""
            out.append(f"           passes with: {'; '.join(p.change.titles)}{at}")
    return out


def _blocking(verdict: Verdict) -> tuple[Diagnostic, ...]:
    """The errors, or what left the verdict open."""
    return verdict.errors or (tuple(d for d in verdict.diagnostics if d.message.startswith("not decided")) if verdict.verdict == "undecided" else ())


# ------------------------------------------------------------------ changes


def _change(text: str, module: Module, verdict: Verdict, params: Mapping[str, Any], target: str) -> Change | None:
    if any(d.gate == "construct" for d in verdict.errors):
        return None  # it is no program for any target
    stop = time.process_time() + SECONDS

    def passes(new: str, values: Mapping[str, Any]) -> Verdict:
        return verify_text(new, params={**params, **values}, target=target, suggest=False)

    if all(d.code in _SIZES for d in verdict.errors):
        smaller = _smaller(text, module, params, passes, stop)
        if smaller is not None:
            return smaller
    return _edited(text, verdict, passes, stop)


_SIZES = frozenset({"H002", "H006", "H007", "H008"})
"""Codes that say that something is too large: smaller values of tunables may do."""


def _smaller(text: str, module: Module, params: Mapping[str, Any], passes: Callable[[str, Mapping[str, Any]], Verdict], stop: float) -> Change | None:
    """One tunable made smaller, as little as does it; of those the one that shrinks least in proportion, ring depths first."""
    best: tuple[tuple[int, float], Change] | None = None
    for name, value in _numbers(module, params):
        for smaller in _steps(value):
            if time.process_time() > stop:
                return best[1] if best else None
            if passes(text, {name: smaller}).verdict != "pass":
                continue
            key = (int("STAGE" not in name.upper()), (value - smaller) / value)
            if best is None or key < best[0]:
                best = (key, Change(params={name: smaller}, titles=(f"{name}={smaller} in place of {value}",)))
            break
    return best[1] if best else None


def _numbers(module: Module, params: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Tunables that are numbers above 1, with the values in force; ring depths come first."""
    values = {name: params.get(name, value) for t in module.schedules for name, value in t.tunables.items()}
    whole = [(name, v) for name, v in values.items() if isinstance(v, int) and not isinstance(v, bool) and v > 1]
    yield from sorted(whole, key=lambda item: "STAGE" not in item[0].upper())


def _steps(value: int) -> list[int]:
    """Smaller values to try: one less each time for small numbers, halves for large ones."""
    if value <= 16:
        return list(range(value - 1, 0, -1))
    out = []
    while value % 2 == 0 and value > 8:
        value //= 2
        out.append(value)
    return out


def _edited(text: str, verdict: Verdict, passes: Callable[[str, Mapping[str, Any]], Verdict], stop: float) -> Change | None:
    """The first fixes of all errors together, then those of what is found after them; edits that turn out not to be needed are taken back.

    Edits of a later round are at places of a text that is changed already: such a change is offered as one replacement of the lines between.
    """
    now, current, titles = text, verdict, []
    rounds: list[tuple[Edit, ...]] = []
    for _ in range(ROUNDS):
        if time.process_time() > stop:
            return None
        edits, said = _first_fixes(current)
        if not edits:
            return None
        rounds.append(edits)
        titles += said
        now = applied(now, edits)
        current = passes(now, {})
        if current.verdict == "pass":
            break
    if current.verdict != "pass":
        return None
    kept = _needed(text, rounds[0], passes, stop) if len(rounds) == 1 else _difference(text, now)
    return Change(edits=kept, titles=tuple(dict.fromkeys(titles)))


def _first_fixes(verdict: Verdict) -> tuple[tuple[Edit, ...], list[str]]:
    """The first fix of every error, without edits that overlap; nothing where an error brings none."""
    edits: list[Edit] = []
    titles = []
    for d in verdict.errors:
        if not d.fixes:
            return (), []
        fix = d.fixes[0]
        fresh = [e for e in fix.edits if e not in edits]
        if any(_overlap(e, other) for e in fresh for other in edits):
            continue
        edits += fresh
        titles.append(fix.title)
    return tuple(edits), titles


def _overlap(a: Edit, b: Edit) -> bool:
    start = lambda e: (e.span.line, e.span.column)  # noqa: E731 - two uses, one line
    end = lambda e: (e.span.end_line, e.span.end_column)  # noqa: E731 - as above
    return start(a) < end(b) and start(b) < end(a)


def _needed(text: str, edits: tuple[Edit, ...], passes: Callable[[str, Mapping[str, Any]], Verdict], stop: float) -> tuple[Edit, ...]:
    """The edits without those that the target does not need."""
    for e in edits:
        fewer = tuple(x for x in edits if x is not e)
        if fewer and time.process_time() < stop and passes(applied(text, fewer), {}).verdict == "pass":
            return _needed(text, fewer, passes, stop)
    return edits


def _difference(old: str, new: str) -> tuple[Edit, ...]:
    """The whole lines that differ, as edits of the old text."""
    from difflib import SequenceMatcher  # here, not above: rarely needed

    from cake_ir.span import Span

    a, b = old.split("\n"), new.split("\n")
    out = []
    for tag, i, j, k, m in SequenceMatcher(a=a, b=b, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if i < j:
            out.append(Edit(Span(i + 1, 1, j, len(a[j - 1]) + 1), "\n".join(b[k:m])))
        else:
            out.append(Edit(Span(i + 1, 1, i + 1, 1), "".join(f"{line}\n" for line in b[k:m])))
    return tuple(out)

"""Rules as rooms: one file a code under `rules/<gate>/`, with its page and, where the rule is not part of elaboration, its check."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable
from functools import cache

from cake_ir.fault import Fault
from cake_ir.plan import Plan
from cake_ir.program import Program
from cake_ir.record import record

Check = Callable[[Program], Iterable[Fault]]
PlanCheck = Callable[[Plan, tuple[Program, ...]], Iterable[Fault]]
"""A check of a whole plan; the programs are those of its launches, in order."""

ROOMS = ("construct", "conformance", "consistency", "safety", "schedule", "notes")
"""The folders of rules, in gate order."""


@record()
class Page:
    """What `cake explain CODE` prints: the rule in one sentence, why it matters, a text that breaks it and one that keeps it.

    `failing` and `passing` are complete texts; `params` are values of tunables that the failing one is verified with. `sources` are ids of
    hardware contracts. `severity` is the usual one.
    """

    code: str
    title: str
    statement: str
    why: str
    failing: str
    passing: str
    limits: str = ""
    sources: tuple[str, ...] = ()
    severity: str = "error"
    params: tuple[tuple[str, object], ...] = ()

    def to_markdown(self) -> str:
        """The page."""
        parts = [f"# {self.code}: {self.title}", self.statement, f"**Why it matters.** {self.why}"]
        parts.append(f"**Refused**\n\n```python\n{self.failing.strip()}\n```" if self.severity == "error" else f"**Reported**\n\n```python\n{self.failing.strip()}\n```")
        parts.append(f"**Accepted**\n\n```python\n{self.passing.strip()}\n```")
        if self.limits:
            parts.append(f"**Limits.** {self.limits}")
        if self.sources:
            parts.append(f"Hardware contracts: {', '.join(self.sources)}.")
        return "\n\n".join(parts) + "\n"


@record()
class Rule:
    """A page and its check; `check` is None where elaboration itself raises the code, or another analysis does.

    `root` says that what the safety gate would find while the rule is broken are consequences of it; `undecides` that what the rule
    finds leaves the verdict open; `stands_in` that the safety gate decides the same and more, so that the rule speaks only while that gate
    is skipped; `yields` that it speaks only where that gate finds no error, which would say it better; `of_values` that it is found where the protocol holds, so that no disagreement of trip counts is behind it; `targeted` that what
    it finds depends on the target: rules of the conformance gate do unless they say otherwise, others do not.
    """

    page: Page
    check: Check | None
    root: bool = False
    undecides: bool = False
    check_plan: PlanCheck | None = None
    stands_in: bool = False
    targeted: bool = False
    of_values: bool = False
    yields: bool = False


@cache
def room(name: str) -> tuple[Rule, ...]:
    """The rules of one folder, by code; the folder's files are imported now."""
    if importlib.util.find_spec(f"cake_verify.rules.{name}") is None:
        return ()
    package = importlib.import_module(f"cake_verify.rules.{name}")
    found: dict[str, Rule] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        page = getattr(module, "PAGE", None)
        if page is None:
            continue
        if page.code in found:
            raise ImportError(f"two files describe {page.code}")
        usual = {"root": False, "undecides": False, "stands_in": False, "targeted": name == "conformance", "of_values": False, "yields": False}
        marks = {field: getattr(module, field.upper(), value) for field, value in usual.items()}
        found[page.code] = Rule(page, getattr(module, "check", None), check_plan=getattr(module, "check_plan", None), **marks)
    return tuple(found[code] for code in sorted(found))


@cache
def checks(name: str) -> tuple[tuple[Rule, Check], ...]:
    """The rules of one folder that have a check, with it."""
    return tuple((rule, rule.check) for rule in room(name) if rule.check is not None)


@cache
def of_values() -> frozenset[str]:
    """Codes of what values mean, which may be wrong where every wait and arrival is right."""
    return frozenset(rule.page.code for name in ("consistency", "safety") for rule in room(name) if rule.of_values)


@cache
def targeted_checks(name: str) -> tuple[tuple[Rule, Check], ...]:
    """The rules of one folder that a schedule's second target can break although its first one does not."""
    return tuple((rule, check) for rule, check in checks(name) if rule.targeted)


def pages() -> dict[str, Page]:
    """Every page, by code."""
    return {rule.page.code: rule.page for name in ROOMS for rule in room(name)}


def explain(code: str) -> str | None:
    """The page of a code as Markdown; None if there is no such code."""
    from cake_verify.diagnostic import GATES

    code = code.strip().upper()
    gate = GATES.get(code[:1])
    for name in (gate,) if gate in ROOMS else ROOMS:
        for rule in room(name):
            if rule.page.code == code:
                return rule.page.to_markdown()
    return None

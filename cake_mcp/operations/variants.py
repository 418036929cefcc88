"""Parameter variants of one text: every combination, stored like any proposal, with what the gates say of it."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..store import Candidate
from ..workspace import Workspace
from .misuse import Misuse, unknown
from .propose import Proposal, propose

if TYPE_CHECKING:
    from cake_backend.judge.building import Built
    from cake_backend.judge.race import Entry
    from cake_backend.judge.routine import Routine

MAX_COMBINATIONS = 4096

Tell = Callable[[str, int, int, str], None]
"""Told of progress: the stage, how many are done, of how many, and a note."""


@dataclass(slots=True)
class Variant:
    """One combination of parameters on its way: `stage` is where it left, or where it is; `reason` says why it left."""

    params: dict[str, Any]
    candidate: Candidate
    verdict: dict[str, Any]
    stage: str = "verify"
    reason: str = ""
    code: str = ""
    routine: "Routine | None" = None
    built: "Built | None" = None
    prediction: dict[str, Any] | None = None
    group: int | None = None
    note: str = ""
    entry: "Entry | None" = None
    record: dict[str, Any] | None = None
    dropped: bool = False
    known: bool = False
    """Whether an earlier search has already said why it leaves."""

    @property
    def label(self) -> str:
        """The parameters as they are written on the command line."""
        return " ".join(f"{name}={value}" for name, value in self.params.items()) or "(defaults)"

    def drop(self, stage: str, reason: str, code: str = "") -> None:
        """Leave at a stage."""
        self.stage, self.reason, self.code, self.dropped = stage, reason, code, True


@dataclass(frozen=True, slots=True)
class Family:
    """A text with a grid of values for some of its parameters; `params` are set for all."""

    text: str
    task: str
    grid: Mapping[str, Sequence[Any]]
    params: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    proposer: str = ""

    @property
    def count(self) -> int:
        """How many combinations there are."""
        total = 1
        for values in self.grid.values():
            total *= len(values)
        return total

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Every combination, the last parameter varying fastest."""
        for values in itertools.product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))


def enumerate_variants(workspace: Workspace, family: Family, tell: Tell) -> list[Variant]:
    """Propose and verify every combination; those that the gates reject, or that are the same program as one before, have left.

    Raises `Misuse` for parameters that the text has not, values given twice, too many combinations, or a text that holds no schedule.
    """
    _check_names(family)
    base = propose(
        workspace,
        Proposal(text=family.text, params=family.params, target=family.target, task=family.task, proposer=family.proposer, rationale="cake tune"),
    )
    out: list[Variant] = []
    first_of: dict[str, Variant] = {}
    for number, chosen in enumerate(family.combinations()):
        tell("verify", number, family.count, "")
        made = propose(
            workspace,
            Proposal(parent=base.candidate.id, params=chosen, task=family.task, proposer=family.proposer, rationale="variant of cake tune"),
        )
        variant = Variant(chosen, made.candidate, made.verdict)
        out.append(variant)
        if made.verdict["verdict"] == "fail":
            found = next(d for d in made.verdict["diagnostics"] if d["severity"] == "error")
            variant.drop("verify", f"line {found['span']['line']}: {found['message']}", found["code"])
        elif (same := made.outline.content_hash) is not None:
            twin = first_of.setdefault(same, variant)
            if twin is not variant:
                variant.drop("duplicate", f"the same program as {twin.label}")
    tell("verify", family.count, family.count, f"{sum(not v.dropped for v in out)} pass")
    return out


def _check_names(family: Family) -> None:
    from cake_ir.frontend import parse

    module = parse(family.text, "<candidate>")
    templates = [*module.schedules, *([module.plan] if module.plan else [])]
    if not templates:
        fault = module.faults[0]
        raise Misuse(f"the text holds no schedule: line {fault.span.line}: [{fault.code}] {fault.message}")
    known = {name for template in templates for name in template.tunables}
    for name in (*family.grid, *family.params):
        if name not in known:
            raise unknown("compile-time parameter", name, known)
    for name, values in family.grid.items():
        if not values or len({repr(v) for v in values}) != len(values):
            raise Misuse(f"the values of `{name}` must be given, each once")
        if name in family.params:
            raise Misuse(f"`{name}` is set for all and varied as well")
    if not 1 <= family.count <= MAX_COMBINATIONS:
        raise Misuse(f"{family.count:,} combinations; at most {MAX_COMBINATIONS:,} are tried at a time: vary less, or in two steps")

"""Arms of branches that no run takes: what stands in them has not been looked at, however right the rest is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Touch
from cake_ir.program import Expr, If, Op, Program
from cake_verify.analyses import trips
from cake_verify.analyses.far_arms import reaching
from cake_verify.analyses.machine import Machine
from cake_verify.analyses.plan import Step
from cake_verify.analyses.setting import Setting
from cake_verify.analyses.settings import Settings
from cake_verify.analyses.words import call

_DECIDES = frozenset({"ld", "param", "field", "role_index", "cta_rank", "cta_id"})
"""What besides the rounds of a loop may keep every run out of an arm."""


_FAR = 8
"""Arms for which settings are looked for once more."""


class Arms:
    """One operation in every arm that arguments, tiles, members or memory decide about, and whether a run has come to it."""

    def __init__(self, machine: Machine) -> None:
        plan = machine.plan
        asked = {id(branch): branch for _, branch, cond in trips.conditions(plan.program) if _open(cond)}
        self.first: dict[tuple[int, bool], tuple[int, If]] = {}
        self.met: set[int] = set()
        self.program = plan.program
        if not asked:
            return
        for number, site in plan.sites.items():
            for s, arm in reversed(site.around):
                if id(s) in asked:
                    if (id(s), arm) not in self.first and machine.steps[number] is not None and _shared(site.op, plan.program):
                        self.first[id(s), arm] = number, asked[id(s)]
                    break
        for number, _ in self.first.values():
            step = machine.steps[number]
            assert step is not None  # chosen above
            machine.steps[number] = _noted(self.met, number, step)

    def far(self, search: Settings) -> Iterator[Setting]:
        """Settings for the first few arms that no run has come to yet."""
        missed = [x for x in sorted(self.first.items(), key=lambda x: x[1][0]) if x[1][0] not in self.met]
        for (_, arm), (number, branch) in missed[:_FAR]:
            if number not in self.met:
                role, cond = next((role, cond) for role, s, cond in trips.conditions(self.program) if s is branch)
                setting = reaching(search, role, cond, arm)
                if setting is not None:
                    yield setting

    def never(self) -> list[Fault]:
        """The first arm that no run has come to."""
        for number, branch in sorted(self.first.values(), key=lambda x: x[0]):
            if number not in self.met:
                op = self.program.ops[number]
                return [Fault("S090", f"not decided: no run comes to {call(op)}, which stands under a condition", branch.cond.span, ((op.span, "never reached"),), severity="note",
                              help="state what the arguments are with `lm.assume(..)`, and what a tensor holds with `lm.assume_values(..)`")]  # fmt: skip
        return []


def _noted(met: set[int], number: int, step: Step) -> Step:
    def noted(m: Any, v: tuple[Any, ...]) -> Any:
        met.add(number)
        return step(m, v)

    return noted


def _open(cond: Expr) -> bool:
    return any(n.op in _DECIDES for n in cond.parts())


def _shared(op: Op, program: Program) -> bool:
    """Whether an operation synchronises, starts or ends asynchronous work, or touches what threads share in a block."""
    return any(not (isinstance(e, Touch) and e.space in ("gmem", "reg")) for e in effects_of(op, program))


__all__ = ["Arms"]

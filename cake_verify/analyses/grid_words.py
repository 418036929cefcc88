"""The words by which CTAs follow each other: what signals set and updates count up, who waits for which, and what nobody can say of them.

A word that only grows by sums, or only by maxima, of numbers that the program knows has the same end in every interleaving, and a wait that
is passed once could be passed ever after: then one walk shows whether each wait ends. Of other updates it is said that this is open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cake_ir.program import Expr, Op
from cake_ir.types import ScalarT
from cake_ir.walk.agents import BLOCKED
from cake_verify.analyses.grid_access import Touching, plain
from cake_verify.analyses.grid_cells import Access
from cake_verify.analyses.plan import Plan, Step
from cake_verify.analyses.state import Member

_GROWS: dict[str, Callable[[int, int], int]] = {"add": lambda have, x: have + x, "max": max}


@dataclass(slots=True, eq=False)
class Word:
    """One flag: its value, the kind of what makes it so, and the signals, oldest first: (value, what it releases, its bit, the access)."""

    value: int = 0
    by: str = ""
    signals: list[tuple[int, int, int, Access]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Wait:
    """A member that waits at a flag."""

    member: Member
    op: int
    tensor: str
    i: int
    value: int
    found: int
    raised: bool
    scope: dict[str, Any]


class Words:
    """All words of one run. `unclear` holds, by tensor, an operation that changes a word nobody knows how; `open` the waits that hang on one."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.words: dict[tuple[str, int], Word] = {}
        self.waits: dict[int, Wait] = {}
        self.unclear: dict[str, int] = {}
        self.open: list[tuple[int, int]] = []

    def word(self, tensor: str, i: int, by: str, op: Op) -> Word:
        """A word that is changed in a way of a kind: two kinds together end as their order has it."""
        found = self.words.setdefault((tensor, i), Word())
        if found.by not in ("", by):
            self.unclear[tensor] = op.id
        found.by = by
        return found

    def update(self, op: Op, t: Touching) -> Step:
        """An update of a flag in memory: a number that the program knows is counted, all else makes the tensor's words unclear."""
        code = self.plan.code.ops[op.id]
        x, how = op.operands.get("x"), str(op.attrs.get("op"))
        at, value = code.index.get("coords", -1), code.index.get("x", -1)
        known = (
            op.name == "atomic" and how in _GROWS and isinstance(x, Expr) and isinstance(x.type, ScalarT) and t.sure
            and min(at, value) >= 0 and op.operands.get("mask") is None and plain(self.plan, op, (x,))
        )  # fmt: skip

        def step(m: Member, v: tuple[Any, ...]) -> Any:
            if not known or v[value] < 0:
                self.unclear[t.tensor] = op.id
            elif t.where(m, v) is not None:
                word = self.word(t.tensor, v[at][0], how, op)
                word.value = _GROWS[how](word.value, v[value])

        return step

    def spin(self, op: Op, tensor: str) -> Step:
        """Wait until the word is high enough; take what the first signal that made it so released, fenced for the copy engine."""
        index = self.plan.code.ops[op.id].index
        at, value = index["i"], index["value"]

        def step(m: Member, v: tuple[Any, ...]) -> Any:
            word = self.words.get((tensor, v[at]))
            have = word.value if word is not None else 0
            unclear = self.unclear.get(tensor)
            if have < v[value] and unclear is None:
                self.waits[m.number] = Wait(m, op.id, tensor, v[at], v[value], have, word is not None, {})
                return BLOCKED
            self.waits.pop(m.number, None)
            known = 0
            if unclear is not None:  # which signal it was is open as well: as if all had come
                self.open.append((op.id, unclear))
                for _, k, _, _ in word.signals if word is not None else ():
                    known |= k
            elif word is not None and v[value] > 0:
                known = next((k for n, k, _, _ in word.signals if n >= v[value]), 0)
            m.K |= known
            m.P |= known
            m.cur = 0
            return None

        return step


__all__ = ["Wait", "Word", "Words"]

"""Successive halving: many variants timed a little, the better half timed more, until few are left that are known well.

Who cannot be told apart from the last that stays is kept too: a tie is never broken by order. What a rung costs is learnt from the one
before it, and a rung that the budget does not hold is made smaller or left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cake_backend.judge.statistics import LEAST_ROUNDS, median_interval

FIRST_ROUNDS = 4
ENOUGH_ROUNDS = 24
KEEP = 3


@dataclass(frozen=True, slots=True)
class Rung:
    """One race: who ran how many rounds, what it cost in GPU seconds, and who was left behind."""

    names: tuple[str, ...]
    rounds: int
    gpu_s: float
    dropped: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {"contestants": len(self.names), "rounds": self.rounds, "gpu_s": round(self.gpu_s, 3), "dropped": list(self.dropped)}


@dataclass(slots=True)
class Outcome:
    """Rungs in order, who is left (the fastest first), and why it ended: `settled`, `budget` or `nobody`."""

    rungs: list[Rung] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    why: str = "settled"


def halve(
    names: Sequence[str], race: Callable[[Sequence[str], int], None], times: Callable[[str], Sequence[float]], left: Callable[[], float],
    *, keep: int = KEEP,
) -> Outcome:  # fmt: skip
    """Race until `keep` and their ties have been timed often enough.

    `race(names, rounds)` adds rounds to what `times(name)` gives; an empty list is somebody who failed. `left()` is the budget that
    remains, in seconds.
    """
    out = Outcome(left=list(names))
    rounds, each, fixed = FIRST_ROUNDS, 0.0, 0.0
    while out.left:
        if out.rungs:
            held = affordable(len(out.left), rounds, each, fixed, left())
            if held < min(2, len(out.left)):
                out.why = "budget"
                return out
            out.left = out.left[:held]
        before = left()
        if before <= 0:
            out.why = "budget"
            return out
        asked = tuple(out.left)
        race(asked, rounds)
        spent = before - left()
        each = max(spent - fixed, 0.0) / (len(asked) * rounds)
        if not out.rungs:  # the first race also says what starting a process and copying data costs: at most half of it
            fixed, each = spent / 2, spent / 2 / (len(asked) * rounds)
        standing = ordered(asked, times)
        done = min((len(times(n)) for n in standing), default=0)
        out.left = standing if done >= ENOUGH_ROUNDS else survivors(standing, times, max(keep, math.ceil(len(standing) / 2)))
        out.rungs.append(Rung(asked, rounds, spent, tuple(n for n in asked if n not in out.left)))
        if done >= LEAST_ROUNDS and (done >= ENOUGH_ROUNDS or len(out.left) <= keep):
            return out
        rounds = min(2 * rounds, max(1, ENOUGH_ROUNDS - done))
    out.why = "nobody"
    return out


def affordable(count: int, rounds: int, each: float, fixed: float, left: float) -> int:
    """How many of `count` contestants a budget of `left` seconds holds for `rounds` rounds."""
    if each <= 0:
        return count if left > fixed else 0
    return max(0, min(count, int((left - fixed) / (rounds * each))))


def ordered(names: Sequence[str], times: Callable[[str], Sequence[float]]) -> list[str]:
    """Those with times, the smallest median first."""
    timed = [n for n in names if times(n)]
    return sorted(timed, key=lambda n: _median(times(n)))


def survivors(standing: Sequence[str], times: Callable[[str], Sequence[float]], count: int) -> list[str]:
    """The first `count` of an ordered list and everybody whose interval reaches that of the last of them."""
    if len(standing) <= count:
        return list(standing)
    bound = median_interval(times(standing[count - 1]))[1]
    return [n for i, n in enumerate(standing) if i < count or median_interval(times(n))[0] <= bound]


def _median(values: Sequence[float]) -> float:
    ordered_values = sorted(values)
    middle = len(ordered_values) // 2
    return ordered_values[middle] if len(ordered_values) % 2 else (ordered_values[middle - 1] + ordered_values[middle]) / 2

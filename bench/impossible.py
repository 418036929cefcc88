"""Times that the chip cannot reach are no measurements: a contender that shows one is taken out, whoever it is."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Protocol

from cake_backend.judge.floors import Floor, below_floor


class Timed(Protocol):
    """What is asked of a contender: its name, seconds by mode, and the reason why it is out."""

    name: str
    times: dict[str, list[float]]
    error: str | None


def refuse(contenders: Iterable[Timed], limit: Floor) -> list[str]:
    """Take out every contender whose median in any mode lies below the floor; returns their names."""
    out = []
    for c in contenders:
        for mode, times in c.times.items():
            if c.error is None and times and below_floor(median := statistics.median(times), limit):
                c.error = f"below the physical floor: {median * 1e6:.2f} us in mode {mode}, {limit.seconds * 1e6:.2f} us is the least ({limit.bound} bound)"
                out.append(c.name)
        if c.error is not None:
            c.times = {}
    return out

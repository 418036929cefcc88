"""How unequal the waits of loads behind other loads are: the wait of each of a few iterations, over the mean.

Waits in a queue are spread, and a ring hides the short ones only, so that their mean says too little. Eight equally likely parts of an
exponential stand for them, one an iteration of the loop that loads, so that a reading still repeats itself.
"""

from __future__ import annotations

import math


def _spread(n: int) -> tuple[float, ...]:
    """Means of the `n` equally likely parts of an exponential distribution of mean 1; any first few of them are spread out too."""

    def below(u: float) -> float:
        return u if u >= 1.0 else (1.0 - u) * math.log(1.0 - u) + u

    parts = [n * (below((j + 1) / n) - below(j / n)) for j in range(n)]
    bits = n.bit_length() - 1
    return tuple(parts[int(f"{i:0{bits}b}"[::-1], 2)] for i in range(n))


SPREAD = _spread(8)

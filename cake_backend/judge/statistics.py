"""What a list of times says: the median with a distribution-free confidence interval, and whether it can be trusted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

LEAST_ROUNDS = 20
MAX_RELATIVE_CI = 0.2


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the median from order statistics: no assumption about the distribution. The whole range for few values."""
    ordered = sorted(values)
    n = len(ordered)
    if n < 6:
        return ordered[0], ordered[-1]
    tail, k, below = (1 - confidence) / 2, 0, 0.0
    while True:  # largest k with P(Binomial(n, 1/2) < k) <= tail
        below += math.comb(n, k) / 2.0**n
        if below > tail:
            break
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]


def summarise(seconds: Sequence[float]) -> dict[str, Any]:
    """Median, extremes, interval and spread of times in seconds; an empty list gives only the count."""
    if not seconds:
        return {"rounds": 0}
    low, high = median_interval(seconds)
    median = statistics.median(seconds)
    return {
        "rounds": len(seconds),
        "median_s": median,
        "min_s": min(seconds),
        "max_s": max(seconds),
        "ci95_s": [low, high],
        "relative_ci": (high - low) / median if median else 0.0,
    }


def ratio_interval(a: Sequence[float], b: Sequence[float]) -> dict[str, Any]:
    """How much faster `b` is than `a`, from rounds that alternated: the median of the rounds' own ratios with its interval."""
    ratios = [x / y for x, y in zip(a, b, strict=True) if y > 0]
    low, high = median_interval(ratios)
    return {"median": statistics.median(ratios), "ci95": [low, high], "rounds": len(ratios)}


def untrusted(summary: dict[str, Any]) -> str | None:
    """Why a time should not be believed, or None."""
    if summary["rounds"] < LEAST_ROUNDS:
        return f"{summary['rounds']} rounds, at least {LEAST_ROUNDS} expected"
    if summary["relative_ci"] > MAX_RELATIVE_CI:
        return f"the interval of the median is {summary['relative_ci']:.0%} of it"
    return None

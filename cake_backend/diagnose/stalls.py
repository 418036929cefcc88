"""Findings from a stall profile, where a run has one: cycles that members waited, by line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cake_backend.cost.prediction import Prediction
from cake_backend.diagnose.finding import Finding


def stall_findings(profile: Mapping[str, Any], prediction: Prediction | None) -> list[Finding]:
    """`profile`: `inflation` (instrumented over plain time, less one) and `members`: role, member, cycles, waits [{line, what, cycles}].

    Waits are compared as sums per resource: which of two members that share a unit waits where is arbitrary.
    """
    inflation = profile.get("inflation")
    members = [m for m in profile.get("members") or () if m.get("cycles")]
    if isinstance(inflation, (int, float)) and inflation > 0.3:
        return [Finding("B38", f"instrumentation made the kernel {inflation:.0%} slower: its waits say nothing", "environment",
                        "profile one role, or one block in 16", "a light profile shows the same waits", numbers={"inflation": inflation}, basis=("measured",), certain=True)]  # fmt: skip
    if not members or prediction is None or not prediction.waits:
        return []
    seen: dict[str, float] = {}
    for m in members:
        for w in m.get("waits") or ():
            seen[str(w.get("what"))] = seen.get(str(w.get("what")), 0.0) + float(w.get("cycles", 0.0)) / float(m["cycles"]) / len(members)
    expected: dict[str, float] = {}
    for share in prediction.waits:
        expected[share.what] = expected.get(share.what, 0.0) + share.share / len(members)
    margin = 0.1 if isinstance(inflation, (int, float)) and inflation > 0.1 else 0.05
    total_seen, total_expected = sum(seen.values()), sum(expected.values())
    if abs(total_seen - total_expected) <= margin:
        return []
    worst = max({*seen, *expected}, key=lambda k: abs(seen.get(k, 0.0) - expected.get(k, 0.0)))
    return [Finding("B40", f"members wait {total_seen:.0%} of their time where {total_expected:.0%} was predicted, most of the difference at `{worst}`", "cost model",
                    "let the constant behind that wait vary: if one value explains all waits and the total, propose it as a calibration", "a plain profile agrees",
                    numbers={"seen": round(seen.get(worst, 0.0), 3), "predicted": round(expected.get(worst, 0.0), 3)}, basis=("measured", "predicted"))]  # fmt: skip

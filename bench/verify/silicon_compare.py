"""Outputs of a run against expected ones, by the rule that ground truth uses; needs nothing but NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def differs(outputs: Mapping[str, Any], want: Mapping[str, Any], tolerance: float) -> str:
    """Where outputs differ from expected ones by more than `tolerance` times the largest expected magnitude; empty if nowhere."""
    for name, right in want.items():
        got = np.asarray(outputs[name])
        if got.tobytes() == right.tobytes():
            continue
        if np.issubdtype(got.dtype, np.integer):
            return f"{name} differs in {int(np.count_nonzero(got != right))} of {right.size} elements"
        a, b = got.astype(np.float64), np.asarray(right).astype(np.float64)
        finite = np.isfinite(b)
        if not np.array_equal(np.isfinite(a), finite):
            return f"{name} has {int(np.count_nonzero(np.isfinite(a) != finite))} of {right.size} elements finite where not expected, or not finite"
        scale = max(1e-30, float(np.abs(b[finite]).max())) if finite.any() else 1.0
        error = float(np.abs(a[finite] - b[finite]).max()) / scale if finite.any() else 0.0
        if error > tolerance:
            return f"{name} is off by {error:.1e}"
    return ""

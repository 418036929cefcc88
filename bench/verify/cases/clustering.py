"""k-means assignment: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, F16, F32, Filled, corpus, empty, f64, normal


def assign(d: int, dtype: Any, dist: bool) -> Any:
    """Nearest centroid of each point; the norms come rounded to f32, as the kernel gets them."""

    def fill(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
        points, mu = normal(rng, x["NP"], d, dtype=dtype), normal(rng, x["NK"], d, dtype=dtype)
        norms = (f64(mu) ** 2).sum(1).astype(np.float32)
        score = f64(norms)[None, :] - 2 * f64(points) @ f64(mu).T
        tensors = {"X": points, "MU": mu, "MU_SQ": norms, "IDX": empty(x["NP"], dtype=np.int32)}
        expected: dict[str, Any] = {"IDX": score.argmin(1).astype(np.int32)}
        if dist:
            tensors["DIST"] = empty(x["NP"], dtype=F32)
            expected["DIST"] = score.min(1)
        return Filled(tensors, dict(x), expected)

    return fill


CLUSTERING = (
    corpus("kmeans_two_accumulators", ({"NP": 300, "NK": 300}, {"NP": 700, "NK": 40, "ctas": 1}), assign(64, BF16, False), params={"D": 64, "STAGES": 3}, ctas=2),
    corpus("kmeans_resident_norms", ({"NP": 600, "NK": 300}, {"NP": 1100, "NK": 40, "ctas": 1}), assign(64, F16, True), params={"STAGES": 2}, ctas=2),
)  # fmt: skip

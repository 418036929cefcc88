"""Schedules with tensor memory: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, F32, Filled, corpus, empty, f64, normal


def _nt(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    a, b = normal(rng, x["M"], x["K"]), normal(rng, x["N"], x["K"])
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"])}, dict(x), {"C": f64(a) @ f64(b).T})


def _scaled(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    a, b = normal(rng, x["M"], x["K"]), normal(rng, x["N"], x["K"])
    s = rng.uniform(0.5, 2.0, x["M"]).astype(F32)
    left = (a.astype(F32) * s[:, None]).astype(BF16)
    return Filled({"A": a, "S": s, "B": b, "C": empty(x["M"], x["N"])}, dict(x), {"C": f64(left) @ f64(b).T})


def _mlp(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    m, f, d = x["M"], x["F"], 64
    a, w1, w2 = normal(rng, m, d), normal(rng, f, d), normal(rng, d, f)
    v = f64(a) @ f64(w1).T
    h = (0.5 * v * (1 + np.tanh(0.79788456 * (v + 0.044715 * v**3)))).astype(np.float32).astype(BF16)
    return Filled({"X": a, "W1": w1, "W2": w2, "Y": empty(m, d, dtype=F32)}, {"M": m, "F": f}, {"Y": f64(h) @ f64(w2).T})


BLACKWELL = (
    corpus("tcgen05_gemm", ({"M": 300, "N": 136, "K": 200}, {"M": 300, "N": 72, "K": 64, "ctas": 1}), _nt, params={"BN": 64, "STAGES": 2}, ctas=2),
    corpus("tcgen05_pair_gemm", ({"M": 300, "N": 200, "K": 200}, {"M": 600, "N": 72, "K": 64, "ctas": 2}), _nt, params={"BN": 128, "STAGES": 2}, ctas=4),
    corpus("tcgen05_pair_scaled", ({"M": 520, "N": 200, "K": 320}, {"M": 300, "N": 520, "K": 64}), _scaled, params={"STAGES": 2}, ctas=4),
    corpus("tcgen05_mlp", ({"M": 300, "F": 200}, {"M": 500, "F": 64, "ctas": 1}), _mlp, ctas=2, tolerance=8e-3),
)  # fmt: skip

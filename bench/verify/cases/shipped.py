"""The schedules that the package ships, at small shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, F32, Case, Filled, empty, f64, normal
from bench.verify.cases.clustering import assign


def _nt(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    a, b = normal(rng, x["M"], x["K"]), normal(rng, x["N"], x["K"])
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"])}, dict(x), {"C": f64(a) @ f64(b).T})


def _batched(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    each = [assign(64, BF16, True)(rng, {"NP": x["NP"], "NK": x["NK"]}) for _ in range(x["NB"])]
    tensors = {name: np.stack([f.tensors[name] for f in each]) for name in each[0].tensors}
    return Filled(tensors, dict(x), {name: np.stack([f.expected[name] for f in each]) for name in each[0].expected})


def _rmsnorm(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    n, d = x["ROWS"], 1024
    a, w = normal(rng, n, d), normal(rng, d)
    y = f64(a) / np.sqrt((f64(a) ** 2).mean(1, keepdims=True) + 1e-5) * f64(w)
    return Filled({"X": a, "W": w, "Y": empty(n, d)}, {"ROWS": n, "eps": 1e-5}, {"Y": y})


SHIPPED = (
    Case("shipped_gemm_hopper", "cake_kernels/gemm/hopper.py", ({"M": 200, "N": 136, "K": 200}, {"M": 200, "N": 264, "K": 64, "ctas": 1}), _nt, {"BN": 128, "STAGES": 2}, ctas=2),
    Case("shipped_gemm_ampere", "cake_kernels/gemm/ampere.py", ({"M": 72, "N": 72, "K": 168}, {"M": 72, "N": 40, "K": 24}), _nt, {"BM": 64, "BN": 64, "STAGES": 3}),
    Case("shipped_kmeans", "cake_kernels/kmeans_assign/hopper.py", ({"NB": 2, "NP": 300, "NK": 300}, {"NB": 1, "NP": 600, "NK": 40, "ctas": 1}), _batched, {"D": 64, "BN": 128}, ctas=2),
    Case("shipped_rmsnorm", "cake_kernels/rmsnorm/hopper.py", ({"ROWS": 5}, {"ROWS": 4, "ctas": 1}), _rmsnorm, {"D": 1024, "WARPS": 4}, 8e-3, ctas=2),
)  # fmt: skip

__all__ = ["F32", "SHIPPED"]

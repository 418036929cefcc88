"""GEMMs with mma.sync, fed by cp.async or by TMA: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, E4M3, F16, F32, Filled, corpus, empty, f64, normal

Axes = Mapping[str, Any]


def _nn(rng: np.random.Generator, x: Axes) -> Filled:
    a, b = normal(rng, x["M"], x["K"], dtype=F16), normal(rng, x["K"], x["N"], dtype=F16)
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"], dtype=F32)}, dict(x), {"C": f64(a) @ f64(b)})


def _nt(rng: np.random.Generator, x: Axes) -> Filled:
    a, b = normal(rng, x["M"], x["K"]), normal(rng, x["N"], x["K"])
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"])}, dict(x), {"C": f64(a) @ f64(b).T})


def _biased(rng: np.random.Generator, x: Axes) -> Filled:
    f = _nt(rng, x)
    bias = normal(rng, x["N"], dtype=F32)
    return Filled({**f.tensors, "BIAS": bias}, f.scalars, {"C": f.expected["C"] + f64(bias)})


def _fp8(rng: np.random.Generator, x: Axes) -> Filled:
    a, b = normal(rng, x["M"], x["K"], dtype=E4M3), normal(rng, x["N"], x["K"], dtype=E4M3)
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"])}, {**x, "scale": 0.25}, {"C": 0.25 * (f64(a) @ f64(b).T)})


def _decode(rng: np.random.Generator, x: Axes) -> Filled:
    w, a = normal(rng, x["N"], x["K"]), normal(rng, x["M"], x["K"])
    return Filled({"W": w, "X": a, "Y": empty(x["M"], x["N"], dtype=BF16)}, dict(x), {"Y": f64(a) @ f64(w).T})


_LONG, _SHORT = {"M": 72, "N": 136, "K": 168}, {"M": 72, "N": 40, "K": 24}

GEMM_SYNC = (
    corpus("cp_async_single_sync", (_LONG, _SHORT), _nn),
    corpus("cp_async_double_sync", (_LONG, _SHORT), _biased),
    corpus("cp_async_fp8", ({"M": 72, "N": 72, "K": 400}, {"M": 72, "N": 40, "K": 48}), _fp8),
    corpus("cp_async_mbarrier", (_LONG, {"M": 200, "N": 40, "K": 24, "ctas": 1}), _nt, params={"STAGES": 2}, ctas=2),
    corpus("gemm_tma_mma_sync", ({"M": 200, "N": 136, "K": 104}, {"M": 72, "N": 136, "K": 24, "ctas": 1}), _nt, params={"BM": 64, "BN": 64, "STAGES": 2}, ctas=2),
    corpus("decode_gemm", ({"M": 7, "N": 136, "K": 456}, {"M": 16, "N": 72, "K": 64}, {"M": 16, "N": 72, "K": 392}), _decode, params={"STAGES": 3}),
)  # fmt: skip

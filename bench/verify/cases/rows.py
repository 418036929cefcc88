"""Row kernels and streaming kernels: arguments and oracles."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, E4M3, F32, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def _softmax(rng: np.random.Generator, x: Axes) -> Filled:
    a = normal(rng, x["ROWS"], x["N"], dtype=F32)
    return Filled({"X": a, "Y": empty(x["ROWS"], x["N"], dtype=F32)}, dict(x), {"Y": softmax(f64(a))})


def _add_rmsnorm(rng: np.random.Generator, x: Axes) -> Filled:
    n, d = x["ROWS"], 1024
    a, r, w = normal(rng, n, d), normal(rng, n, d), normal(rng, d)
    h = (f64(a) + f64(r)).astype(np.float32).astype(BF16)
    y = f64(h) / np.sqrt((f64(h) ** 2).mean(1, keepdims=True) + 1e-5) * f64(w)
    return Filled({"X": a, "R": r, "W": w, "Y": empty(n, d), "R2": empty(n, d)}, {"ROWS": n, "eps": 1e-5}, {"Y": y, "R2": f64(h)})


def _quantise(rng: np.random.Generator, x: Axes) -> Filled:
    n, d = x["ROWS"], 1024
    a = normal(rng, n, d)
    scale = np.abs(f64(a)).max(1) / 448
    return Filled({"X": a, "Q": empty(n, d, dtype=E4M3), "SCALE": empty(n, dtype=F32)}, dict(x), {"Q": f64(a) / scale[:, None], "SCALE": scale})


def _layernorm(rng: np.random.Generator, x: Axes) -> Filled:
    n, d = x["ROWS"], 256
    a, g, b = normal(rng, n, d), normal(rng, d, dtype=F32), normal(rng, d, dtype=F32)
    v = f64(a)
    y = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * f64(g) + f64(b)
    return Filled({"X": a, "G": g, "B": b, "Y": empty(n, d)}, {"ROWS": n, "eps": 1e-5}, {"Y": y})


def _transpose(rng: np.random.Generator, x: Axes) -> Filled:
    a = normal(rng, x["M"], x["N"])
    return Filled({"X": a, "Y": empty(x["N"], x["M"])}, dict(x), {"Y": f64(a).T})


def _running(rng: np.random.Generator, x: Axes) -> Filled:
    n, d = x["ROWS"], 256
    a = normal(rng, n, d, dtype=F32)
    return Filled({"X": a, "Y": empty(n, d, dtype=F32), "LAST": empty(n, d, dtype=F32), "READY": np.zeros(n, np.int32)}, {"ROWS": n}, {"Y": f64(a).cumsum(0)})


def _gelu(rng: np.random.Generator, x: Axes) -> Filled:
    a = normal(rng, x["M"], x["N"])
    v = f64(a)
    return Filled({"X": a, "Y": empty(x["M"], x["N"])}, dict(x), {"Y": 0.5 * v * (1 + np.tanh(0.79788456 * (v + 0.044715 * v**3)))})


def _segments(rng: np.random.Generator, x: Axes) -> Filled:
    offs, d = offsets(x["lengths"]), 128
    t, n = max(1, int(offs[-1])), len(x["lengths"])
    a = normal(rng, t, d, dtype=F32)
    want = np.stack([f64(a[lo:hi]).mean(0) if hi > lo else np.zeros(d) for lo, hi in itertools.pairwise(offs)])
    return Filled({"X": a, "OFFS": offs, "Y": empty(n, d, dtype=F32)}, {"T": t, "NS": n, "NS1": n + 1}, {"Y": want})


ROWS = (
    corpus("softmax_two_pass", ({"ROWS": 5, "N": 2500}, {"ROWS": 5, "N": 4, "ctas": 1}), _softmax, params={"BLOCK": 1024, "WARPS": 4}, ctas=2),
    corpus("add_rmsnorm", ({"ROWS": 5}, {"ROWS": 4, "ctas": 1}), _add_rmsnorm, params={"D": 1024}, ctas=2, tolerance=8e-3),
    corpus("quantise_rows", ({"ROWS": 5}, {"ROWS": 4, "ctas": 1}), _quantise, params={"D": 1024}, ctas=2, tolerance=4e-2),
    corpus("layernorm_short_rows", ({"ROWS": 21}, {"ROWS": 3}), _layernorm, ctas=2, tolerance=8e-3),
    corpus("transpose_tiles", ({"M": 200, "N": 264}, {"M": 264, "N": 40, "ctas": 1}), _transpose, params={"STAGES": 2, "CSTAGES": 2}, ctas=2, tolerance=0.0),
    corpus("gelu_one_role", ({"M": 72, "N": 392}, {"M": 64, "N": 40}), _gelu, tolerance=8e-3),
    corpus("running_sum", ({"ROWS": 24}, {"ROWS": 8, "ctas": 1}), _running, ctas=3, tolerance=1e-5),
    corpus("segment_mean", ({"lengths": (100, 0, 7, 64, 33)}, {"lengths": (1, 2, 0, 3, 1), "ctas": 1}), _segments, ctas=2),
)  # fmt: skip

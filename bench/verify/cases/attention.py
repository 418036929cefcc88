"""Attention: arguments and oracles."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, F32, LOG2E, Array, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def attend(q: Any, k: Any, v: Any, scale: float, causal: bool = False) -> Array:
    """softmax(scale q k^T) v in float64, over the last two axes."""
    s = f64(q) @ np.swapaxes(f64(k), -1, -2) * scale
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    return softmax(s) @ f64(v)


def _log2(scale: float) -> float:
    return scale * LOG2E


def _dense(causal: bool) -> Any:
    def fill(rng: np.random.Generator, x: Axes) -> Filled:
        b, h, s, d = x["B"], x["H"], x["S"], 64
        q, k, v = (normal(rng, b, h, s, d) for _ in range(3))
        scalars = {"B": b, "H": h, "S": s, "scale_log2": _log2(d**-0.5)}
        return Filled({"Q": q, "K": k, "V": v, "O": empty(b, h, s, d)}, scalars, {"O": attend(q, k, v, d**-0.5, causal)})

    return fill


def _flat(rng: np.random.Generator, x: Axes) -> Filled:
    bh, s, d = x["BH"], x["S"], 64
    q, k, v = (normal(rng, bh, s, d) for _ in range(3))
    scalars = {"BH": bh, "S": s, "scale_log2": _log2(d**-0.5)}
    return Filled({"Q": q, "K": k, "V": v, "O": empty(bh, s, d)}, scalars, {"O": attend(q, k, v, d**-0.5)})


def _varlen(rng: np.random.Generator, x: Axes) -> Filled:
    cu, h, d = offsets(x["lengths"]), x["H"], 64
    t = max(1, int(cu[-1]))
    q, k, v = (normal(rng, t, h, d) for _ in range(3))
    want = np.zeros((t, h, d))
    for lo, hi in itertools.pairwise(cu):
        if hi > lo:
            part = [np.swapaxes(a[lo:hi], 0, 1) for a in (q, k, v)]
            want[lo:hi] = np.swapaxes(attend(*part, d**-0.5), 0, 1)
    n = len(x["lengths"])
    scalars = {"T": t, "H": h, "NS": n, "NS1": n + 1, "MAXM": -(-max(x["lengths"]) // 192), "scale_log2": _log2(d**-0.5)}
    return Filled({"Q": q, "K": k, "V": v, "O": empty(t, h, d), "CU": cu}, scalars, {"O": want})


def _paged(rng: np.random.Generator, x: Axes) -> Filled:
    lengths, d, ps, hq = np.array(x["lengths"], np.int32), 64, 64, 16
    nb, maxp = len(lengths), int(-(-max(lengths) // ps))
    pages = nb * maxp + 3
    table = rng.permutation(pages)[: nb * maxp].astype(np.int32)
    q, kp, vp = normal(rng, nb, hq, d), normal(rng, pages, ps, d), normal(rng, pages, ps, d)
    want = np.zeros((nb, hq, d))
    for b in range(nb):
        mine = table[b * maxp : (b + 1) * maxp]
        k, v = (p[mine].reshape(-1, d)[: lengths[b]] for p in (kp, vp))
        want[b] = attend(q[b], k, v, d**-0.5)
    scalars = {"NB": nb, "HQ": hq, "PAGES": pages, "MAXP": maxp, "scale_log2": _log2(d**-0.5)}
    return Filled({"Q": q, "KP": kp, "VP": vp, "TABLE": table, "LEN": lengths, "O": empty(nb, hq, d, dtype=F32)}, scalars, {"O": want})


ATTENTION = (
    corpus("attention_causal", ({"B": 1, "H": 1, "S": 300}, {"B": 4, "H": 1, "S": 64, "ctas": 1}), _dense(True), params={"D": 64, "BN": 64, "STAGES": 3}, ctas=2, tolerance=1.5e-2),
    corpus("attention_varlen", ({"lengths": (200, 0, 70), "H": 1}, {"lengths": (5, 193, 7), "H": 1, "ctas": 1}), _varlen, params={"BN": 64}, ctas=2, tolerance=1.5e-2),
    corpus("attention_paged_decode", ({"lengths": (300, 64, 1)}, {"lengths": (65,)}), _paged, params={"STAGES": 2}, tolerance=1.5e-2),
    corpus("attention_mma_sync", ({"BH": 1, "S": 200}, {"BH": 2, "S": 40}), _flat, tolerance=1.5e-2),
)  # fmt: skip

__all__ = ["ATTENTION", "BF16"]

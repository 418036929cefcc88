"""Attention and retrieval in other styles: tables of tokens, windows, probabilities in tensor memory; arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.attention import attend
from bench.verify.cases.case import F16, F32, LOG2E, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def _against(q: Any, k: Any) -> tuple[Any, Any]:
    """Queries and keys of which every other query has negative scores only, so that zeros which a copy filled in would win."""
    q[..., ::2, :] = abs(q[..., ::2, :])
    return q, -abs(k)


def _topk(rng: np.random.Generator, x: Axes) -> Filled:
    q, k = _against(normal(rng, x["NQ"], 64, dtype=F16), normal(rng, x["NK"], 64, dtype=F16))
    score = q.astype(np.float32) @ k.astype(np.float32).T
    best = np.argsort(-score, axis=1, kind="stable")[:, :4]
    tensors = {"Q": q, "KEYS": k, "VAL": empty(4, x["NQ"], dtype=F32), "IDX": empty(4, x["NQ"], dtype=np.int32)}
    return Filled(tensors, dict(x), {"VAL": f64(np.take_along_axis(score, best, 1).T), "IDX": best.T.astype(np.int32)})


def _tokens(rng: np.random.Generator, x: Axes) -> Filled:
    lengths, ptr, d = x["lengths"], offsets(x["lengths"]), 64
    nb, used = len(lengths), max(1, int(ptr[-1]))
    slots = used + 7
    q, kv, slot = normal(rng, nb, 16, d), normal(rng, slots, 2 * d), rng.permutation(slots)[:used].astype(np.int32)
    want = np.zeros((nb, 16, d))
    for b in range(nb):
        if lengths[b]:
            rows = kv[slot[ptr[b] : ptr[b + 1]]]
            want[b] = attend(q[b], rows[:, :d], rows[:, d:], d**-0.5)
    scalars = {"NB": nb, "NB1": nb + 1, "SLOTS": slots, "USED": used, "scale_log2": d**-0.5 * LOG2E}
    return Filled({"Q": q, "KV": kv, "PTR": ptr, "SLOT": slot, "O": empty(nb, 16, d)}, scalars, {"O": want})


def _window(rng: np.random.Generator, x: Axes) -> Filled:
    bh, s, d, win = x["BH"], x["S"], 64, x["WIN"]
    q, k, v = (normal(rng, bh, s, d) for _ in range(3))
    i = np.arange(s)
    seen = (i[None] <= i[:, None]) & (i[None] > i[:, None] - win)
    score = np.where(seen, f64(q) @ np.swapaxes(f64(k), 1, 2) * d**-0.5, -np.inf)
    return Filled({"Q": q, "K": k, "V": v, "O": empty(bh, s, d)}, {**x, "scale_log2": d**-0.5 * LOG2E}, {"O": softmax(score) @ f64(v)})


def _dense(rng: np.random.Generator, x: Axes) -> Filled:
    bh, s, d = x["BH"], x["S"], 64
    q, k, v = (normal(rng, bh, s, d) for _ in range(3))
    q, k = _against(q, k)
    return Filled({"Q": q, "K": k, "V": v, "O": empty(bh, s, d)}, {**x, "scale_log2": d**-0.5 * LOG2E}, {"O": attend(q, k, v, d**-0.5)})


LOOKUPS = (
    corpus("retrieve_topk", ({"NQ": 200, "NK": 300}, {"NQ": 300, "NK": 40, "ctas": 1}), _topk, params={"STAGES": 2}, ctas=2),
    corpus("attention_token_table", ({"lengths": (70, 0, 33, 130)}, {"lengths": (1, 2)}), _tokens, tolerance=1.5e-2),
    corpus("attention_window", ({"BH": 1, "S": 300, "WIN": 100}, {"BH": 3, "S": 130, "WIN": 10, "ctas": 1}), _window, ctas=2, tolerance=1.5e-2),
    corpus("fmha_tmem", ({"BH": 2, "S": 300}, {"BH": 5, "S": 50, "ctas": 1}), _dense, ctas=2, tolerance=1.5e-2),
)  # fmt: skip

"""Sums, counts and rows in other styles: carries in registers, flags between blocks, sums over clusters; arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, F32, Filled, corpus, empty, f64, normal, offsets

Axes = Mapping[str, Any]


def _cumsum(rng: np.random.Generator, x: Axes) -> Filled:
    a = normal(rng, x["ROWS"], x["N"], dtype=F32)
    return Filled({"X": a, "Y": empty(x["ROWS"], x["N"], dtype=F32)}, dict(x), {"Y": f64(a).cumsum(1)})


def _scan(rng: np.random.Generator, x: Axes) -> Filled:
    a, nb = rng.integers(-9, 9, x["N"]).astype(np.int32), -(-x["N"] // 256)
    tensors = {"X": a, "Y": empty(x["N"], dtype=np.int32), "ENDS": empty(nb, dtype=np.int32), "UP": np.zeros(nb, np.int32)}
    return Filled(tensors, {"N": x["N"], "NB": nb}, {"Y": a.cumsum().astype(np.int32)})


def _layernorm(rng: np.random.Generator, x: Axes) -> Filled:
    a, w = normal(rng, x["ROWS"], 2048), normal(rng, 2048)
    a = (f64(a) + 0.5).astype(a.dtype)  # a mean that nobody can do without
    v = f64(a)
    y = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * f64(w)
    return Filled({"X": a, "W": w, "Y": empty(x["ROWS"], 2048)}, {**x, "eps": 1e-5}, {"Y": y})


def _histogram(rng: np.random.Generator, x: Axes) -> Filled:
    a = rng.integers(-3, 131, x["N"]).astype(np.int32)
    count = np.bincount(a[(a >= 0) & (a < 128)], minlength=128).astype(np.int32)
    return Filled({"X": a, "COUNT": np.zeros(128, np.int32)}, dict(x), {"COUNT": count})


def _stencil(rng: np.random.Generator, x: Axes) -> Filled:
    a = normal(rng, x["B"], x["H"], x["W"], dtype=F32)
    p = np.pad(f64(a), ((0, 0), (1, 1), (0, 0)))
    return Filled({"X": a, "Y": empty(*a.shape, dtype=F32)}, {**x, "c0": 0.5, "c1": 0.25}, {"Y": 0.5 * f64(a) + 0.25 * (p[:, :-2] + p[:, 2:])})


def _cross_entropy(rng: np.random.Generator, x: Axes) -> Filled:
    rows, v = x["ROWS"], x["V"]
    a, t = normal(rng, rows, v), rng.integers(0, v, rows).astype(np.int32)
    loss = np.log(np.exp(f64(a)).sum(1)) - f64(a)[np.arange(rows), t]
    return Filled({"X": a, "FLAT": a.reshape(-1).copy(), "T": t, "LOSS": empty(rows, dtype=F32)}, dict(x), {"LOSS": loss})


def _round(rng: np.random.Generator, x: Axes) -> Filled:
    a = normal(rng, x["N"], 64, dtype=F32)
    want = np.zeros((4, x["N"], 64))
    for first in range(0, x["N"], 256):
        total = f64(a[first : first + 256]).reshape(4, 64, 64).sum(0)
        for p in range(4):
            want[p, first + 64 * p : first + 64 * p + 64] = total
    return Filled({"X": a, "Y": np.zeros((4, x["N"], 64), np.float32)}, {**x, "P": 4}, {"Y": want})


def _in_place(rng: np.random.Generator, x: Axes) -> Filled:
    rows, d = x["ROWS"], 512
    h, r, w = normal(rng, rows, d), normal(rng, rows, d), normal(rng, d)
    s = (h.astype(np.float32) + r.astype(np.float32)).astype(BF16)
    y = f64(s) / np.sqrt((f64(s) ** 2).mean(1, keepdims=True) + 1e-5) * f64(w)
    return Filled({"H": h, "R": r, "W": w, "DONE": np.zeros(1, np.int32)}, {**x, "eps": 1e-5}, {"H": y, "R": f64(s), "DONE": np.array([rows], np.int32)})


def _columns(rng: np.random.Generator, x: Axes) -> Filled:
    a = normal(rng, x["M"], x["N"])
    return Filled({"X": a, "SUM": np.zeros(x["N"], np.float32)}, dict(x), {"SUM": f64(a).sum(0)})


def _append(rng: np.random.Generator, x: Axes) -> Filled:
    lengths, cu, ns = x["lengths"], offsets(x["lengths"]), len(x["lengths"])
    first = np.cumsum([2, *(n + 3 for n in lengths[:-1])]).astype(np.int32)
    t, slots = max(1, int(cu[-1])), int(first[-1]) + lengths[-1] + 4
    new, cache = normal(rng, t, 128), normal(rng, slots, 128)
    want = f64(cache).copy()
    for s in range(ns):
        want[first[s] : first[s] + lengths[s]] = f64(new[cu[s] : cu[s + 1]])
    return Filled({"NEW": new, "CACHE": cache, "CU": cu, "FIRST": first}, {"T": t, "SLOTS": slots, "NS": ns, "NS1": ns + 1}, {"CACHE": want})


STREAMS = (
    corpus("row_cumsum", ({"ROWS": 12, "N": 512}, {"ROWS": 16, "N": 128, "ctas": 1}), _cumsum, ctas=2, tolerance=1e-5),
    corpus("scan_blocks", ({"N": 2500}, {"N": 1000, "ctas": 1}), _scan, ctas=3),
    corpus("layernorm_cluster", ({"ROWS": 3}, {"ROWS": 1}), _layernorm, tolerance=1.5e-2),
    corpus("histogram", ({"N": 3000}, {"N": 70, "ctas": 1}), _histogram, ctas=2),
    corpus("stencil_halo", ({"B": 2, "H": 20, "W": 100}, {"B": 1, "H": 60, "W": 40, "ctas": 1}), _stencil, ctas=2, tolerance=1e-5),
    corpus("cross_entropy", ({"ROWS": 5, "V": 1200}, {"ROWS": 4, "V": 8, "ctas": 1}), _cross_entropy, ctas=2),
    corpus("residual_inplace", ({"ROWS": 21}, {"ROWS": 3, "ctas": 1}), _in_place, ctas=2, tolerance=1e-2),
    corpus("column_sums", ({"M": 200, "N": 136}, {"M": 64, "N": 264, "ctas": 1}), _columns, ctas=2),
    corpus("kv_append", ({"lengths": (40, 0, 17, 16)}, {"lengths": (1, 2, 0, 5), "ctas": 1}), _append, ctas=2, tolerance=0.0),
    corpus("allgather_ring", ({"N": 768}, {"N": 256}), _round, ctas=4, tolerance=1e-5),
)  # fmt: skip

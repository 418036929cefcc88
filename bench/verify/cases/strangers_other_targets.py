"""Kernels of a fourth stranger, on targets and features that the rest of the corpus has little of: arguments and oracles. What was false about their first verdicts is in CHANGELOG.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, E4M3, F16, F32, LOG2E, Filled, corpus, empty, f64, normal, offsets

Axes = Mapping[str, Any]


def _alibi(rng: np.random.Generator, x: Axes) -> Filled:
    bh, s, d = x["BH"], x["S"], 64
    q, k, v = (normal(rng, bh, s, d, dtype=F16) for _ in range(3))
    slopes = (np.exp2(-np.arange(1, bh + 1)) * LOG2E).astype(F32)
    i = np.arange(s)
    z = f64(q) @ f64(k).transpose(0, 2, 1) / 8 + f64(slopes)[:, None, None] / LOG2E * (i[None, :] - i[:, None])
    z = np.where(i[None, :] <= i[:, None], z, -np.inf)
    p = np.exp(z - z.max(2, keepdims=True))
    want = p / p.sum(2, keepdims=True) @ f64(v)
    return Filled({"Q": q, "K": k, "V": v, "slopes": slopes, "O": empty(bh, s, d, dtype=F16)}, {"BH": bh, "S": s, "scale_log2": np.float32(LOG2E / 8)}, {"O": want})


def _groupnorm(rng: np.random.Generator, x: Axes) -> Filled:
    b, hw, c, g = x["B"], x["HW"], 128, 4
    a, gamma, beta = (f64(normal(rng, b, hw, c)) * 1.5 + 0.25).astype(F16), normal(rng, c, dtype=F32), normal(rng, c, dtype=F32)
    grouped = f64(a).reshape(b, hw, g, c // g)
    mean = grouped.mean((1, 3), keepdims=True)
    z = ((grouped - mean) / np.sqrt(grouped.var((1, 3), keepdims=True) + 1e-5)).reshape(b, hw, c) * f64(gamma) + f64(beta)
    return Filled({"X": a, "gamma": gamma, "beta": beta, "Y": empty(b, hw, c, dtype=F16)}, {"B": b, "HW": hw, "eps": np.float32(1e-5)}, {"Y": z / (1 + np.exp(-z))})


def _gemm_bias(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, bias = normal(rng, m, k), normal(rng, n, k), normal(rng, n, dtype=F32)
    return Filled({"A": a, "B": b, "bias": bias, "C": empty(m, n)}, {"M": m, "N": n, "K": k}, {"C": f64(a) @ f64(b).T + f64(bias)})


def _experts(rng: np.random.Generator, x: Axes) -> Filled:
    lens, n, kw = x["lens"], x["N"], x["KW"]
    first, e, k = offsets(lens), len(lens), kw * 128
    t = int(first[-1])
    q, w = normal(rng, t, k, dtype=E4M3), normal(rng, e, n, k, dtype=E4M3)
    ex, ew = rng.integers(122, 130, (t, kw * 4)).astype(np.uint8), rng.integers(122, 130, (e, n, kw * 4)).astype(np.uint8)
    wide_x = f64(q) * np.repeat(np.exp2(ex.astype(float) - 127), 32, -1)
    wide_w = f64(w) * np.repeat(np.exp2(ew.astype(float) - 127), 32, -1)
    want = np.concatenate([wide_x[first[i] : first[i + 1]] @ wide_w[i].T for i in range(e)])
    sx, sw = np.ascontiguousarray(ex.view(np.uint32).T), np.ascontiguousarray(ew.view(np.uint32).transpose(0, 2, 1))
    tensors = {"X": q, "SX": sx, "W": w, "SW": sw, "Y": empty(t, n), "first": first}
    return Filled(tensors, {"T": t, "E": e, "E1": e + 1, "N": n, "K": k, "KW": kw}, {"Y": want})


def _histogram(rng: np.random.Generator, x: Axes) -> Filled:
    b, n = x["B"], x["L"]
    a = np.minimum(rng.geometric(0.02, (b, n)), 255).astype(np.int32)
    return Filled({"X": a, "H": empty(b, 256, dtype=np.int32)}, {"B": b, "L": n}, {"H": np.stack([np.bincount(r, minlength=256) for r in a]).astype(np.int32)})


def _compact(rng: np.random.Generator, x: Axes) -> Filled:
    n = x["N"]
    a = normal(rng, n, dtype=F32)
    at = np.flatnonzero(a > 0).astype(np.int32)
    out, where = np.zeros(n, F32), np.full(n, -7, np.int32)
    tiles = -(-n // 512)
    ends = np.array([(a[: 512 * (i + 1)] > 0).sum() for i in range(tiles)], np.int32)
    want, want_at = out.copy(), where.copy()
    want[: len(at)], want_at[: len(at)] = a[at], at
    tensors = {"X": a, "out": out, "where": where, "ends": empty(tiles, dtype=np.int32), "flags": np.zeros(tiles, np.int32)}
    return Filled(tensors, {"N": n, "TILES": tiles}, {"out": f64(want), "where": want_at, "ends": ends})


def _edges(rng: np.random.Generator, x: Axes) -> Filled:
    ptr = offsets(x["lens"])
    nnz, v = int(ptr[-1]), len(x["lens"])
    score, want = normal(rng, nnz, dtype=F32) * np.float32(3), np.zeros(nnz)
    for i in range(v):
        z = f64(score[ptr[i] : ptr[i + 1]])
        if len(z):
            want[ptr[i] : ptr[i + 1]] = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
    tensors = {"score": score, "indptr": ptr, "P": empty(nnz, dtype=F32), "next": np.zeros(1, np.int32)}
    return Filled(tensors, {"NNZ": nnz, "V": v, "V1": v + 1}, {"P": want})


def _transposed(rng: np.random.Generator, x: Axes) -> Filled:
    m, n = x["M"], x["N"]
    a = normal(rng, m, n)
    y = f64(a) * 0.5
    return Filled({"X": a, "inv": np.array([0.5], F32), "Y": empty(n, m, dtype=E4M3), "YN": empty(m, n, dtype=E4M3)}, {"M": m, "N": n}, {"Y": y.T, "YN": y})


def _attention(rng: np.random.Generator, x: Axes) -> Filled:
    bh, s, d = x["BH"], x["S"], 64
    q, k, v = (normal(rng, bh, s, d) for _ in range(3))
    z = f64(q) @ f64(k).transpose(0, 2, 1) / 8
    p = np.exp(z - z.max(2, keepdims=True))
    return Filled({"Q": q, "K": k, "V": v, "O": empty(bh, s, d)}, {"BH": bh, "S": s, "scale_log2": np.float32(LOG2E / 8)}, {"O": p / p.sum(2, keepdims=True) @ f64(v)})


def _mlp(rng: np.random.Generator, x: Axes) -> Filled:
    m, k, h, n = x["M"], x["K"], x["H"], x["N"]
    a, w1, w2 = normal(rng, m, k), (f64(normal(rng, h, k)) * 0.125).astype(BF16), normal(rng, n, h)
    z = f64(a) @ f64(w1).T
    hid = f64((0.5 * z * (1 + np.tanh(0.79788456 * (z + 0.044715 * z**3)))).astype(BF16))
    mt = -(-m // 64)
    flags = mt * (h // 64)
    return Filled({"X": a, "W1": w1, "W2": w2, "Hid": empty(m, h), "Y": empty(m, n), "ready": np.zeros(flags, np.int32)}, {"M": m, "K": k, "H": h, "N": n, "MT": mt, "FLAGS": flags}, {"Y": hid @ w2.astype(float).T})


STRANGERS_OTHER_TARGETS = (
    corpus("flash_alibi", ({"BH": 2, "S": 200}, {"BH": 3, "S": 40}), _alibi),
    corpus("groupnorm_silu", ({"B": 2, "HW": 150}, {"B": 1, "HW": 30}), _groupnorm),
    corpus("pair_clc_bias", ({"M": 500, "N": 264, "K": 392}, {"M": 300, "N": 520, "K": 64}), _gemm_bias, ctas=2, target="sm_103a", tolerance=1e-2),
    corpus("mxfp8_experts_sm120", ({"lens": (70, 0, 30), "N": 96, "KW": 4}, {"lens": (3, 5, 9, 1), "N": 64, "KW": 1}), _experts, ctas=2, tolerance=1e-2),
    corpus("cluster_histogram", ({"B": 2, "L": 5000}, {"B": 1, "L": 305}), _histogram),
    corpus("compact_positive", ({"N": 2500}, {"N": 300, "ctas": 1}), _compact, ctas=3),
    corpus("edge_softmax", ({"lens": (700, 0, 5, 1300, 1, 20)}, {"lens": (3, 3, 512)}), _edges, ctas=2),
    corpus("transpose_quant", ({"M": 208, "N": 400}, {"M": 64, "N": 384}), _transposed, ctas=1, tolerance=7e-2),
    corpus("fa4_two_tiles", ({"BH": 2, "S": 300}, {"BH": 3, "S": 50}), _attention, ctas=1, tolerance=1e-2),
    corpus("mlp_one_launch", ({"M": 100, "K": 200, "H": 192, "N": 136}, {"M": 40, "K": 64, "H": 64, "N": 64}), _mlp, ctas=3, tolerance=1e-2),
)

"""Products and attention of an eighth stranger who had read the language page only: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import E4M3, F16, F32, LOG2E, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def _silu(z: Any) -> Any:
    return z / (1 + np.exp(-z))


def _residual(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, r = normal(rng, m, k), normal(rng, n, k), normal(rng, m, n)
    return Filled({"A": a, "B": b, "R": r, "D": empty(m, n)}, {"M": m, "N": n, "K": k, "alpha": 0.5, "beta": 2.0}, {"D": 0.5 * (f64(a) @ f64(b).T) + 2 * f64(r)})


def _rows_by_columns(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k, dtype=F16), normal(rng, k, n, dtype=F16)
    return Filled({"A": a, "B": b, "C": empty(m, n, dtype=F16)}, {"M": m, "N": n, "K": k}, {"C": f64(a) @ f64(b)})


def _channels(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k), normal(rng, n, k)
    y = f64(a) @ f64(b).T
    tensors = {"X": a, "W": b, "Y": empty(m, n), "TOTAL": np.zeros(n, F32), "SQUARES": np.zeros(n, F32)}
    return Filled(tensors, {"M": m, "N": n, "K": k}, {"Y": y, "TOTAL": y.sum(0), "SQUARES": (y * y).sum(0)})


def _ragged(rng: np.random.Generator, x: Axes) -> Filled:
    lens, h = x["lens"], x["H"]
    t, b, cu = sum(lens), len(lens), offsets(lens)
    q, k, v = (normal(rng, t, h, 64) for _ in range(3))
    o = np.zeros((t, h, 64))
    for i in range(b):
        at = slice(cu[i], cu[i + 1])
        for j in range(h):
            o[at, j] = np.tril(_silu(f64(q)[at, j] @ f64(k)[at, j].T / 8)) / max(1, lens[i]) @ f64(v)[at, j]
    return Filled({"Q": q, "K": k, "V": v, "CU": cu, "O": empty(t, h, 64)}, {"T": t, "H": h, "B": b, "B1": b + 1, "QT": -(-max(lens) // 64), "scale": 0.125}, {"O": o})


def _both_turned(rng: np.random.Generator, x: Axes) -> Filled:
    n_, m, n, k = x["L"], x["M"], x["N"], x["K"]
    a, b = normal(rng, n_, k, m, dtype=F16), normal(rng, n_, k, n, dtype=F16)
    return Filled({"A": a, "B": b, "C": empty(n_, m, n, dtype=F16)}, {"L": n_, "M": m, "N": n, "K": k}, {"C": f64(a).transpose(0, 2, 1) @ f64(b)})


def _eight_bits(rng: np.random.Generator, x: Axes) -> Filled:
    h, hk, s, n = x["H"], x["HK"], x["S"], x["N"]
    q, k, v = normal(rng, h, s, 64, dtype=E4M3), normal(rng, hk, n, 64, dtype=E4M3), normal(rng, hk, n, 64, dtype=E4M3)
    group = np.arange(h) * hk // h
    o = softmax(f64(q) @ f64(k)[group].transpose(0, 2, 1) * 0.125) @ f64(v)[group] * 1.5
    tensors = {"Q": q, "K": k, "VT": np.ascontiguousarray(v.transpose(0, 2, 1)), "O": empty(h, s, 64)}
    return Filled(tensors, {"H": h, "HK": hk, "S": s, "N": n, "qk": 0.125 * LOG2E, "vs": 1.5}, {"O": o})


def _int8_scores(rng: np.random.Generator, x: Axes) -> Filled:
    h, s, n = x["H"], x["S"], x["N"]
    qb, kb = -(-s // 64), -(-n // 64)
    q, k, v = rng.integers(-127, 128, (h, s, 128)).astype(np.int8), rng.integers(-127, 128, (h, n, 128)).astype(np.int8), normal(rng, h, n, 128, dtype=F16)
    qs, ks = (rng.random((h, qb)) * 0.01 + 0.005).astype(F32), (rng.random((h, kb)) * 0.01 + 0.005).astype(F32)
    z = f64(q) @ f64(k).transpose(0, 2, 1) * np.repeat(f64(qs), 64, 1)[:, :s, None] * np.repeat(f64(ks), 64, 1)[:, None, :n] / LOG2E
    z = np.where(np.arange(n) <= np.arange(s)[:, None] + n - s, z, -np.inf)
    tensors = {"Q": q, "K": k, "V": v, "QS": qs.reshape(-1), "KS": ks.reshape(-1), "O": empty(h, s, 128, dtype=F16)}
    return Filled(tensors, {"H": h, "S": s, "N": n, "HQB": h * qb, "HKB": h * kb}, {"O": softmax(z * LOG2E * np.log(2)) @ f64(v)})


def _widened(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    w, a, s = rng.integers(-127, 128, (n, k)).astype(np.int8), normal(rng, m, k), (rng.random(n) * 0.01 + 0.01).astype(F32)
    return Filled({"W": w, "X": a, "SW": s, "YT": empty(n, m)}, {"M": m, "N": n, "K": k}, {"YT": f64(w) @ f64(a).T * f64(s)[:, None]})


def _rectified(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, bias = (rng.integers(-64, 65, shape).astype(F32) / 64 for shape in ((m, k), (n, k), (n,)))
    return Filled({"A": a, "B": b, "BIAS": bias, "C": empty(m, n, dtype=F32)}, {"M": m, "N": n, "K": k}, {"C": np.maximum(f64(a) @ f64(b).T + f64(bias), 0)})


def _row_and_column(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, sa, sb = normal(rng, m, k, dtype=E4M3), normal(rng, n, k, dtype=E4M3), (rng.random(m) + 0.5).astype(F32), (rng.random(n) + 0.5).astype(F32)
    return Filled({"A": a, "B": b, "SA": sa, "SB": sb, "C": empty(m, n)}, {"M": m, "N": n, "K": k}, {"C": f64(a) @ f64(b).T * f64(sa)[:, None] * f64(sb)})


def _product(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k), normal(rng, n, k)
    return Filled({"A": a, "B": b, "C": empty(m, n)}, {"M": m, "N": n, "K": k}, {"C": f64(a) @ f64(b).T})


def _merged(rng: np.random.Generator, x: Axes) -> Filled:
    lens, hk, s = np.array(x["lens"], np.int32), x["HK"], x["S"]
    b, h = len(lens), 8 * hk
    q, k, v = normal(rng, b, h, 128), normal(rng, b, hk, s, 128), normal(rng, b, hk, s, 128)
    o = np.zeros((b, h, 128))
    for i in range(b):
        for j in range(h):
            o[i, j] = softmax(f64(k)[i, j // 8, : lens[i]] @ f64(q)[i, j] * 0.09) @ f64(v)[i, j // 8, : lens[i]]
    return Filled({"Q": q, "K": k, "V": v, "LEN": lens, "O": empty(b, h, 128)}, {"B": b, "H": h, "HK": hk, "S": s, "scale": 0.09 * LOG2E}, {"O": o})


def _retained(rng: np.random.Generator, x: Axes) -> Filled:
    n, s = x["BH"], x["S"]
    c = -(-s // 64)
    k, v, decay, gamma = normal(rng, n, s, 64), normal(rng, n, s, 128), rng.random((n, 64)).astype(F32), rng.random(n).astype(F32)
    pad = ((0, 0), (0, 64 * c - s), (0, 0))
    kk, vv = (np.pad(f64(a), pad).reshape(n, c, 64, -1) for a in (k, v))
    states, state = np.zeros((n, c, 64, 128)), np.zeros((n, 64, 128))
    for i in range(c):
        states[:, i] = state
        state = state * f64(gamma)[:, None, None] + (kk[:, i] * f64(decay)[..., None]).transpose(0, 2, 1) @ vv[:, i]
    tensors = {"K": k, "V": v, "DECAY": decay, "GAMMA": gamma, "STATES": empty(n, c, 64, 128), "LAST": empty(n, 64, 128, dtype=F32)}
    return Filled(tensors, {"BH": n, "S": s, "NC": c}, {"STATES": states, "LAST": state})


NEWCOMERS = (
    corpus("gemm_residual_prefetched", ({"M": 200, "N": 264, "K": 200}, {"M": 300, "N": 136, "K": 40}), _residual, params={"STAGES": 3}, ctas=2),
    corpus("gemm_two_wg_rings", ({"M": 200, "N": 136, "K": 264}, {"M": 136, "N": 40, "K": 64}), _rows_by_columns, params={"DEEP": 2}),
    corpus("gemm_bn_stats", ({"M": 300, "N": 264, "K": 200}, {"M": 520, "N": 136, "K": 40}), _channels, params={"STAGES": 2}, ctas=2, tolerance=1e-2),
    corpus("hstu_silu_attention", ({"H": 2, "lens": (300, 0, 70)}, {"H": 2, "lens": (20, 64)}), _ragged, params={"STAGES": 2}, tolerance=1e-2),
    corpus("gemm_at_b_sm80", ({"L": 2, "M": 72, "N": 136, "K": 140}, {"L": 2, "M": 40, "N": 64, "K": 20}), _both_turned, target="sm_80"),
    corpus("fp8_flash_vt_cache", ({"H": 4, "HK": 2, "S": 100, "N": 208}, {"H": 2, "HK": 2, "S": 30, "N": 48}), _eight_bits, tolerance=6e-2),
    corpus("sage_int8_scores", ({"H": 2, "S": 100, "N": 230}, {"H": 3, "S": 40, "N": 40}), _int8_scores, tolerance=1e-2),
    corpus("tcgen05_i8_transformed", ({"M": 136, "N": 200, "K": 208}, {"M": 40, "N": 300, "K": 64}), _widened, params={"STAGES": 2}, ctas=2, target="sm_100a"),
    corpus("tcgen05_store_warp", ({"M": 200, "N": 264, "K": 100}, {"M": 300, "N": 40, "K": 32}), _rectified, params={"STAGES": 2}, ctas=2),
    corpus("tcgen05_half_columns", ({"M": 200, "N": 300, "K": 400}, {"M": 300, "N": 72, "K": 112}), _row_and_column, params={"STAGES": 2}, target="sm_100a"),
    corpus("gemm_sm120_two_depths", ({"M": 100, "N": 136, "K": 384}, {"M": 130, "N": 40, "K": 128}), _product, params={"ADEPTH": 3}, ctas=2, target="sm_120a"),
    corpus("decode_warps_merge_sm121", ({"HK": 2, "S": 330, "lens": (320, 30)}, {"HK": 2, "S": 64, "lens": (5, 64)}), _merged, target="sm_121a", tolerance=1e-2),
    corpus("retention_states", ({"BH": 3, "S": 300}, {"BH": 5, "S": 60}), _retained, params={"STAGES": 2}, ctas=2, tolerance=1e-2),
)

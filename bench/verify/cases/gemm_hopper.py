"""Hopper GEMMs: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, E4M3, F16, F32, Filled, corpus, empty, f64, normal, offsets

Axes = Mapping[str, Any]


def _product(out: Any, dtype: Any = BF16, act: Any = lambda x: x, act_a: Any = lambda x: x) -> Any:
    """Fill for C = act(act_a(A) B^T) with K-major operands."""

    def fill(rng: np.random.Generator, x: Axes) -> Filled:
        a, b = normal(rng, x["M"], x["K"], dtype=dtype), normal(rng, x["N"], x["K"], dtype=dtype)
        return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"], dtype=out)}, dict(x), {"C": act(f64(act_a(a)) @ f64(b).T)})

    return fill


def silu(x: Any) -> Any:
    v = f64(x)
    return (v / (1 + np.exp(-v))).astype(np.float32).astype(BF16)


def _wgrad(rng: np.random.Generator, x: Axes) -> Filled:
    dy, a = normal(rng, x["T"], x["M"]), normal(rng, x["T"], x["N"])
    return Filled({"DY": dy, "X": a, "DW": empty(x["M"], x["N"], dtype=F32)}, dict(x), {"DW": f64(dy).T @ f64(a)})


def _grouped(rng: np.random.Generator, x: Axes) -> Filled:
    offs = offsets(x["lengths"])
    t, g = int(offs[-1]), len(x["lengths"])
    a, b = normal(rng, max(t, 1), x["K"]), normal(rng, g, x["N"], x["K"])
    want = np.zeros((max(t, 1), x["N"]))
    for i in range(g):
        want[offs[i] : offs[i + 1]] = f64(a[offs[i] : offs[i + 1]]) @ f64(b[i]).T
    scalars = {"T": max(t, 1), "G": g, "G1": g + 1, "N": x["N"], "K": x["K"]}
    return Filled({"A": a, "B": b, "C": empty(max(t, 1), x["N"]), "OFFS": offs}, scalars, {"C": want} if t else {})


def _fp8(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, kb, bn = x["M"], x["N"], x["KB"], 64
    a, b = normal(rng, m, kb * 128, dtype=E4M3), normal(rng, n, kb * 128, dtype=E4M3)
    sa = (rng.random((kb, m), dtype=np.float32) + 0.5).astype(np.float32)
    sb = (rng.random(-(-n // bn) * kb, dtype=np.float32) + 0.5).astype(np.float32)
    want = np.zeros((m, n))
    for i in range(kb):
        part = f64(a[:, i * 128 : i * 128 + 128]) @ f64(b[:, i * 128 : i * 128 + 128]).T
        want += part * f64(sa[i])[:, None] * f64(sb)[np.arange(n) // bn * kb + i][None, :]
    return Filled({"A": a, "B": b, "SA": sa, "SB": sb, "C": empty(m, n)}, {"M": m, "N": n, "K": kb * 128, "KB": kb}, {"C": want})


def _resident(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], 64, 128
    a, w, bias = normal(rng, m, k), normal(rng, n, k), normal(rng, n, dtype=F32)
    v = f64(a) @ f64(w).T + f64(bias)
    gelu = 0.5 * v * (1 + np.tanh(0.79788456 * (v + 0.044715 * v**3)))
    return Filled({"X": a, "W": w, "BIAS": bias, "Y": empty(m, n)}, {"M": m}, {"Y": gelu})


def _int8(rng: np.random.Generator, x: Axes) -> Filled:
    a = normal(rng, x["M"], x["K"])
    w = rng.integers(-127, 128, (x["N"], x["K"]), dtype=np.int8)
    scale = 0.03125
    return Filled({"A": a, "W": w, "C": empty(x["M"], x["N"])}, {**x, "scale": scale}, {"C": f64(a) @ (scale * f64(w)).T})


def _in_turn(rng: np.random.Generator, x: Axes) -> Filled:
    a, b = normal(rng, x["M"], x["K"]), normal(rng, x["N"], x["K"])
    words = -(-x["M"] // 64) * -(-x["N"] // 64)
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"], dtype=F32), "TURN": np.zeros(words, np.int32)}, {k: x[k] for k in "MNK"}, {"C": f64(a) @ f64(b).T})


def _relu(v: Any) -> Any:
    return np.maximum(v, 0)


def _short(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    a, b = normal(rng, x["M"], x["K"]), normal(rng, x["N"], x["K"])
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"], dtype=F32)}, {"M": x["M"], "N": x["N"]}, {"C": f64(a) @ f64(b).T})


GEMM_HOPPER = (
    corpus("gemm_multicast_m", ({"M": 300, "N": 72, "K": 200}, {"M": 260, "N": 136, "K": 64}), _product(F32), params={"BN": 64, "STAGES": 2}, ctas=2),
    corpus("gemm_multicast_2x2", ({"M": 130, "N": 264, "K": 200}, {"M": 780, "N": 72, "K": 64}), _product(BF16), params={"BN": 64, "STAGES": 2}, ctas=4),
    corpus("gemm_cluster_sync", ({"M": 200, "N": 136, "K": 128}, {"M": 700, "N": 40, "K": 128}), _short, ctas=2),
    corpus("gemm_pingpong", ({"M": 136, "N": 160, "K": 200}, {"M": 264, "N": 72, "K": 64, "ctas": 1}), _product(BF16), params={"BN": 64, "STAGES": 2}, ctas=2),
    corpus("gemm_activated_a", ({"M": 200, "N": 136, "K": 200}, {"M": 200, "N": 72, "K": 64, "ctas": 1}), _product(BF16, act_a=silu), params={"BN": 64, "STAGES": 2}, ctas=2, tolerance=8e-3),
    corpus("gemm_wgrad", ({"T": 200, "M": 200, "N": 72}, {"T": 40, "M": 200, "N": 136, "ctas": 1}), _wgrad, params={"BN": 64, "STAGES": 2}, ctas=2),
    corpus("gemm_split_k", ({"M": 100, "N": 136, "K": 200}, {"M": 100, "N": 72, "K": 64, "ctas": 1}), _product(BF16), params={"STAGES": 2}, ctas=2),
    corpus("gemm_aliased_epilogue", ({"M": 136, "N": 72, "K": 392}, {"M": 136, "N": 72, "K": 64}), _product(BF16, act=_relu), params={"BN": 64, "STAGES": 3}),
    corpus("gemm_deep", ({"M": 200, "N": 72, "K": 456}, {"M": 200, "N": 136, "K": 128, "ctas": 1}, {"M": 200, "N": 200, "K": 64, "ctas": 1}), _product(F16, F16), params={"BN": 64, "STAGES": 5}, ctas=2),
    corpus("gemm_grouped", ({"lengths": (150, 0, 40, 128), "N": 72, "K": 136}, {"lengths": (1, 65), "N": 136, "K": 64, "ctas": 1}), _grouped, params={"BN": 64, "STAGES": 2}, ctas=2),
    corpus("gemm_fp8_blockwise", ({"M": 200, "N": 136, "KB": 3}, {"M": 132, "N": 72, "KB": 1, "ctas": 1}), _fp8, params={"BN": 64, "STAGES": 2}, ctas=2),
    corpus("gemm_resident_b", ({"M": 400}, {"M": 300, "ctas": 1}), _resident, params={"K": 128}, ctas=2, tolerance=8e-3),
    corpus("gemm_serial_k", ({"M": 100, "N": 136, "K": 264}, {"M": 64, "N": 64, "K": 200, "ctas": 1}), _in_turn, params={"BN": 64, "STAGES": 2}, ctas=4),
    corpus("gemm_int8_weights", ({"M": 100, "N": 136, "K": 208}, {"M": 100, "N": 72, "K": 64, "ctas": 1}), _int8, params={"BN": 64, "STAGES": 2}, ctas=2, tolerance=8e-3),
)  # fmt: skip

"""Matrix products of a sixth stranger who had read the language page only: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import E4M3, F32, Filled, corpus, empty, f64, normal, offsets

Axes = Mapping[str, Any]


def _collected(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k, p = x["M"], x["N"], x["K"], x["SPLITS"]
    a, b = normal(rng, m, k), normal(rng, n, k)
    words = 2 * -(-m // 128) * -(-n // 128) * p
    tensors = {"A": a, "B": b, "C": empty(m, n), "PART": empty(p, m, n, dtype=F32), "READY": np.zeros(words, np.int32)}
    return Filled(tensors, {"M": m, "N": n, "K": k, "SPLITS": p, "WORDS": words}, {"C": f64(a) @ f64(b).T})


def _turns(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, bias = normal(rng, m, k), normal(rng, n, k), normal(rng, n, dtype=F32)
    return Filled({"A": a, "B": b, "BIAS": bias, "C": empty(m, n)}, {"M": m, "N": n, "K": k}, {"C": np.maximum(f64(a) @ f64(b).T + f64(bias), 0)})


def _experts(rng: np.random.Generator, x: Axes) -> Filled:
    lens, n, k = x["lens"], x["N"], x["K"]
    rows, e, kb = sum(lens), len(lens), k // 128
    a, w = normal(rng, rows, k, dtype=E4M3), normal(rng, e, n, k, dtype=E4M3)
    sa, sw = (rng.random((kb, rows)) + 0.5).astype(F32), (rng.random((e, n // 128, kb)) + 0.5).astype(F32)
    scaled, at = f64(a) * np.repeat(f64(sa).T, 128, 1), offsets(lens)
    wide = f64(w) * np.repeat(np.repeat(f64(sw), 128, 1), 128, 2)
    want = np.concatenate([scaled[at[g] : at[g + 1]] @ wide[g].T for g in range(e)])
    scalars = {"ROWS": rows, "E": e, "N": n, "K": k, "KB": kb, "SWN": sw.size}
    return Filled({"X": a, "W": w, "SX": sa, "SW": sw.reshape(-1), "OFFS": at, "Y": empty(rows, n)}, scalars, {"Y": want})


def _projected(rng: np.random.Generator, x: Axes) -> Filled:
    t, hid, hq, hk, p = x["T"], x["HID"], x["HQ"], x["HK"], x["P"]
    a, w = normal(rng, t, hid), normal(rng, (hq + 2 * hk) * 128, hid)
    angle, pos = rng.random((p, 64)) * 6, rng.integers(0, p, t).astype(np.int32)
    cos, sin = np.cos(angle).astype(F32), np.sin(angle).astype(F32)
    y = (f64(a) @ f64(w).T).reshape(t, -1, 128)
    lo, hi, c, s = y[..., :64], y[..., 64:], f64(cos)[pos][:, None], f64(sin)[pos][:, None]
    turned = np.concatenate([lo * c - hi * s, hi * c + lo * s], -1)
    parts = {"Q": turned[:, :hq], "KO": turned[:, hq : hq + hk], "V": y[:, hq + hk :]}
    tensors = {"X": a, "W": w, "POS": pos, "COS": cos, "SIN": sin, **{n: empty(t, v.shape[1] * 128) for n, v in parts.items()}}
    scalars = {"T": t, "HID": hid, "WN": len(w), "QN": hq * 128, "KN": hk * 128, "HQ": hq, "HK": hk, "P": p}
    return Filled(tensors, scalars, {n: v.reshape(t, -1) for n, v in parts.items()})


def _gated(rng: np.random.Generator, x: Axes) -> Filled:
    m, f, k = x["M"], x["F"], x["K"]
    a, g, u = normal(rng, m, k), normal(rng, f, k), normal(rng, f, k)
    z = f64(a) @ f64(g).T
    return Filled({"X": a, "WG": g, "WU": u, "H": empty(m, f)}, {"M": m, "F": f, "K": k}, {"H": z / (1 + np.exp(-z)) * (f64(a) @ f64(u).T)})


def _words(rng: np.random.Generator, rows: int, k: int) -> tuple[Any, Any]:
    """Scales of 32 elements as numbers, and as words of four, the words of one block of K side by side."""
    e = rng.integers(125, 130, (rows, k // 32)).astype(np.uint8)
    return np.repeat(2.0 ** (e.astype(float) - 127), 32, 1), np.ascontiguousarray(np.ascontiguousarray(e).view(np.uint32).T)


def _residual(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, r = normal(rng, m, k, dtype=E4M3), normal(rng, n, k, dtype=E4M3), normal(rng, m, n)
    (sa, pa), (sb, pb) = _words(rng, m, k), _words(rng, n, k)
    return Filled({"A": a, "B": b, "SA": pa, "SB": pb, "R": r, "C": empty(m, n)}, {"M": m, "N": n, "K": k, "KW": k // 128}, {"C": f64(r) + (f64(a) * sa) @ (f64(b) * sb).T})


def _promoted(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k, dtype=E4M3), normal(rng, n, k, dtype=E4M3)
    sa, sb = (rng.random((k // 128, m)) + 0.5).astype(F32), (rng.random((n // 128, k // 128)) + 0.5).astype(F32)
    want = (f64(a) * np.repeat(f64(sa).T, 128, 1)) @ (f64(b) * np.repeat(np.repeat(f64(sb), 128, 0), 128, 1)).T
    return Filled({"A": a, "B": b, "SA": sa, "SB": sb.reshape(-1), "C": empty(m, n)}, {"M": m, "N": n, "K": k, "KB": k // 128, "SBN": sb.size}, {"C": want})


def _shares(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k, g = x["M"], x["N"], x["K"], x["G"]
    a, b = normal(rng, m, k), normal(rng, n, k)
    tensors = {"A": a, "B": b, "C": empty(m, n), "PART": empty(g, 128, 128, dtype=F32), "FLAG": np.zeros(2 * g, np.int32)}
    return Filled(tensors, {"M": m, "N": n, "K": k, "G": g, "G2": 2 * g}, {"C": f64(a) @ f64(b).T})


def _mirrored(rng: np.random.Generator, x: Axes) -> Filled:
    m, k = x["M"], x["K"]
    a = normal(rng, m, k)
    return Filled({"X": a, "C": empty(m, m)}, {"M": m, "K": k}, {"C": f64(a) @ f64(a).T})


def _gathered(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k), normal(rng, n, k)
    tensors = {"SHARDS": a, "A": empty(m, k), "B": b, "C": empty(m, n), "HERE": np.zeros(m // 128, np.int32)}
    return Filled(tensors, {"M": m, "N": n, "K": k, "BLOCKS": m // 128}, {"A": f64(a), "C": f64(a) @ f64(b).T})


VISITORS = (
    corpus("splitk_collector", ({"M": 200, "N": 136, "K": 328, "SPLITS": 3}, {"M": 130, "N": 40, "K": 64, "SPLITS": 1}), _collected, params={"DEPTH": 2}, ctas=2),
    corpus("pingpong_bias", ({"M": 300, "N": 256, "K": 200}, {"M": 600, "N": 128, "K": 40}), _turns, params={"STAGES": 2}, ctas=2),
    corpus("fp8_grouped_promote", ({"lens": (130, 0, 40, 90), "N": 128, "K": 384}, {"lens": (5, 129), "N": 256, "K": 128}), _experts, params={"STAGES": 2}, ctas=2, tolerance=1e-2),
    corpus("qkv_rope_epilogue", ({"T": 150, "HID": 200, "HQ": 2, "HK": 1, "P": 32}, {"T": 20, "HID": 64, "HQ": 1, "HK": 2, "P": 7}), _projected, params={"STAGES": 2}, ctas=2),
    corpus("tcgen05_swiglu_ring", ({"M": 300, "F": 200, "K": 200}, {"M": 600, "F": 72, "K": 64, "ctas": 2}), _gated, params={"STAGES": 2}, ctas=4, tolerance=1e-2),
    corpus("mxfp8_residual_sm120", ({"M": 148, "N": 136, "K": 384}, {"M": 260, "N": 72, "K": 128}), _residual, params={"STAGES": 2}, ctas=2),
    corpus("tcgen05_fp8_promote", ({"M": 200, "N": 256, "K": 640}, {"M": 70, "N": 384, "K": 128}), _promoted, params={"STAGES": 2}, ctas=2),
    corpus("streamk_ranges", ({"M": 200, "N": 136, "K": 328, "G": 5}, {"M": 130, "N": 40, "K": 64, "G": 2}), _shares, params={"STAGES": 2}, ctas=2),
    corpus("syrk_mirror", ({"M": 296, "K": 200}, {"M": 136, "K": 40}), _mirrored, params={"STAGES": 2}, ctas=2),
    corpus("allgather_gemm_overlap", ({"M": 256, "N": 256, "K": 320}, {"M": 384, "N": 128, "K": 64}), _gathered, params={"STAGES": 2}, ctas=2),
)

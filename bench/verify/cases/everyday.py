"""Kernels of everyday serving and training, written from the documentation alone: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from bench.verify.cases.case import E4M3, F16, F32, LOG2E, Array, Filled, corpus, empty, f64, normal

Axes = Mapping[str, Any]
E5M2, UE8M0 = ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu


def _rope(rng: np.random.Generator, x: Axes) -> Filled:
    t, q, k, p, s = x["TOKENS"], x["QH"], x["KH"], x["POSITIONS"], x["SLOTS"]
    qkv, angle = normal(rng, t, q + 2 * k, 128), rng.random((p, 64)) * 6
    cos, sin = np.cos(angle).astype(F32), np.sin(angle).astype(F32)
    pos, slot = rng.integers(0, p, t).astype(np.int32), rng.permutation(s)[:t].astype(np.int32)
    slot[t // 2] = -1
    kc, vc = normal(rng, s, k, 128), normal(rng, s, k, 128)
    lo, hi, c, n = f64(qkv[..., :64]), f64(qkv[..., 64:]), f64(cos)[pos][:, None], f64(sin)[pos][:, None]
    turned = np.concatenate([lo * c - hi * n, hi * c + lo * n], -1)
    keys, values, kept = f64(kc), f64(vc), slot >= 0
    keys[slot[kept]], values[slot[kept]] = turned[kept, q : q + k], f64(qkv)[kept, q + k :]
    tensors = {"QKV": qkv, "COS": cos, "SIN": sin, "POS": pos, "SLOT": slot, "QOUT": empty(t, q, 128), "KC": kc, "VC": vc}
    return Filled(tensors, {**x, "HEADS": q + 2 * k}, {"QOUT": turned[:, :q], "KC": keys, "VC": values})


def _conv(rng: np.random.Generator, x: Axes) -> Filled:
    b, t, c = x["BATCH"], x["T"], x["C"]
    u, w, bias, start = normal(rng, b, t, c), normal(rng, 4, c, dtype=F32), normal(rng, c, dtype=F32), normal(rng, b, 3, c)
    rows = np.concatenate([f64(start), f64(u)], 1)
    y = f64(bias) + sum(rows[:, i : i + t] * f64(w)[i] for i in range(4))
    return Filled({"U": u, "W": w, "BIAS": bias, "START": start, "O": empty(b, t, c), "LAST": empty(b, 3, c)}, dict(x), {"O": y / (1 + np.exp(-y)), "LAST": rows[:, t : t + 3]})


def _router(rng: np.random.Generator, x: Axes) -> Filled:
    n, h, k = x["TOKENS"], x["HID"], 2
    a, g = normal(rng, n, h), normal(rng, 64, h)
    z = f64(a) @ f64(g).T
    ids = np.argsort(-z, 1, kind="stable")[:, :k]
    v = np.take_along_axis(z, ids, 1)
    e = np.exp(v - v[:, :1])
    tensors = {"H": a, "G": g, "ID": empty(n, k, dtype=np.int32), "WT": empty(n, k, dtype=F32), "LOAD": np.zeros(64, np.int32)}
    return Filled(tensors, dict(x), {"ID": ids.astype(np.int32), "WT": e / e.sum(1, keepdims=True), "LOAD": np.bincount(ids.ravel(), minlength=64).astype(np.int32)})


def _decode(rng: np.random.Generator, x: Axes) -> Filled:
    b, hk, pages, most, splits = x["B"], x["HK"], x["PAGES"], x["MAXP"], x["S"]
    hq, scale = 16 * hk, float(LOG2E / np.sqrt(128))
    q, k, v = normal(rng, b, hq, 128), normal(rng, pages * 16, hk, 128), normal(rng, pages * 16, hk, 128)
    # A part of its own for each split where there can be: the maximum of none, -1e30, would hide what the sums beside it are.
    table, length = rng.integers(0, pages, (b, most)).astype(np.int32), rng.integers(16 * (splits - 1) + 1 if most >= splits else 1, most * 16 + 1, b).astype(np.int32)
    o, ml = np.zeros((splits, b, hq, 128)), np.zeros((splits, b, hq, 2))
    for i, n in enumerate(map(int, length)):
        used = -(-n // 16)
        each = -(-used // splits)
        for s in range(splits):
            first, end = min(s * each, used), min((s + 1) * each, used)
            at = (table[i, first:end, None] * 16 + np.arange(16)).ravel()[: max(0, n - first * 16)]
            for h in range(hq):
                z = f64(k)[at, h // 16] @ f64(q)[i, h] * scale
                top = z.max() if z.size else np.float32(-1e30)
                p = 2.0 ** (z - top)
                o[s, i, h], ml[s, i, h] = p @ f64(v)[at, h // 16], (top, p.sum())
    tensors = {"Q": q, "KC": k, "VC": v, "TABLE": table.ravel(), "LEN": length, "OP": empty(splits, b, hq, 128, dtype=F32), "ML": empty(splits, b, hq, 2, dtype=F32)}
    return Filled(tensors, {**x, "HQ": hq, "SLOTS": pages * 16, "ENTRIES": b * most, "scale": scale}, {"OP": o, "ML": ml})


def _packed(rng: np.random.Generator, rows: int, k: int) -> tuple[Array, Any]:
    """Scales of 32 elements as numbers, and in the order of row tiles, words of K, and atoms of 32 rows."""
    e = rng.integers(125, 130, (-(-rows // 128) * 128, k // 32)).astype(np.uint8)
    atoms = e.reshape(-1, 4, 32, k // 128, 4).transpose(0, 3, 2, 1, 4).reshape(-1, 16)
    return np.repeat(2.0 ** (e[:rows].astype(float) - 127), 32, 1), atoms.view(UE8M0)


def _mxf8(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k, dtype=E4M3), normal(rng, n, k, dtype=E5M2)
    (sa, pa), (sb, pb) = _packed(rng, m, k), _packed(rng, n, k)
    return Filled({"A": a, "B": b, "SA": pa, "SB": pb, "D": empty(m, n)}, {**x, "ROWSA": len(pa), "ROWSB": len(pb)}, {"D": (f64(a) * sa) @ (f64(b) * sb).T})


def _norm_back(rng: np.random.Generator, x: Axes) -> Filled:
    n, d = x["N"], 512
    a, dy, g = normal(rng, n, d), normal(rng, n, d), normal(rng, d, dtype=F32)
    v = f64(a)
    mu, rstd = v.mean(1, keepdims=True), 1 / np.sqrt(v.var(1, keepdims=True) + 1e-5)
    hat, w = (v - mu) * rstd, f64(dy) * f64(g)
    dx = (w - (hat * (w * hat).sum(1, keepdims=True) + w.sum(1, keepdims=True)) / d) * rstd
    tensors = {"X": a, "DY": dy, "GAMMA": g, "MU": mu[:, 0].astype(F32), "RSTD": rstd[:, 0].astype(F32), "DX": empty(n, d), "DGAMMA": np.zeros(d, F32), "DBETA": np.zeros(d, F32)}
    return Filled(tensors, dict(x), {"DX": dx, "DGAMMA": (f64(dy) * hat).sum(0), "DBETA": f64(dy).sum(0)})


def _loss(rng: np.random.Generator, x: Axes) -> Filled:
    b, v = x["B"], x["V"]
    a, y = normal(rng, b, v), rng.integers(0, v, b).astype(np.int32)
    y[b // 2], y[0] = -100, 0
    z, rows, kept = f64(a), np.arange(b), y >= 0
    lse = np.log(np.exp(z).sum(1))
    grad = np.exp(z - lse[:, None])
    grad[rows, np.maximum(y, 0)] -= 1
    loss = np.where(kept, lse - z[rows, np.maximum(y, 0)], 0)
    return Filled({"Logits": a, "Label": y, "Loss": empty(b, dtype=F32), "Grad": empty(b, v)}, {**x, "inv_count": 0.25}, {"Loss": loss, "Grad": grad * kept[:, None] * 0.25})


def _int8(rng: np.random.Generator, x: Axes) -> Filled:
    r, c, k = x["R"], x["C"], x["K"]
    a, b = (rng.integers(-128, 128, (n, k)).astype(np.int8) for n in (r, c))
    sx, sw = rng.random(r).astype(F32), rng.random(c).astype(F32)
    return Filled({"Xq": a, "Wq": b, "Sx": sx, "Sw": sw, "Y": empty(r, c)}, dict(x), {"Y": (f64(a) @ f64(b).T) * f64(sx)[:, None] * f64(sw)})


def _swiglu(rng: np.random.Generator, x: Axes) -> Filled:
    t, h, i = x["T"], x["H"], x["I"]
    a, g, u = normal(rng, t, h), normal(rng, i, h), normal(rng, i, h)
    z = f64(a) @ f64(g).T
    return Filled({"X": a, "WG": g, "WU": u, "OUT": empty(t, i)}, dict(x), {"OUT": z / (1 + np.exp(-z)) * (f64(a) @ f64(u).T)})


def _pair(rng: np.random.Generator, x: Axes) -> Filled:
    a, b = normal(rng, x["M"], x["K"], dtype=F16), normal(rng, x["N"], x["K"], dtype=F16)
    return Filled({"X": a, "W": b, "Z": empty(x["M"], x["N"], dtype=F16)}, dict(x), {"Z": f64(a) @ f64(b).T})


def _pairs(rng: np.random.Generator, x: Axes) -> Filled:
    n, e, h, f, k = x["NT"], x["NE"], x["HID"], x["FF"], x["TOPK"]
    pairs = n * k
    tok, w, scale, expert = normal(rng, n, h), normal(rng, e, f, h), rng.random(pairs).astype(F32), rng.integers(0, e, pairs)
    order, blocks = [], []
    for i in range(e):
        mine = np.flatnonzero(expert == i).tolist()
        count = -(-len(mine) // 32)
        order += mine + [pairs] * (32 * count - len(mine))
        blocks += [i] * count
    order, blocks = np.array(order + [pairs] * 32, np.int32), np.array([*blocks, -1], np.int32)
    out = np.stack([f64(w)[expert[p]] @ f64(tok)[p // k] * scale[p] for p in range(pairs)])
    tensors = {"TOK": tok, "W": w, "SORTED": order, "EXPERT": blocks, "OUT": empty(pairs, f), "SCALE": scale}
    return Filled(tensors, {**x, "PADDED": len(order), "BLOCKS": len(blocks), "PAIRS": pairs}, {"OUT": out})


def _int4(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, q, scale = normal(rng, m, k), rng.integers(0, 16, (n, k)), normal(rng, k // 128, n)
    halves = q.reshape(n, k // 128, 2, 64)
    packed = (halves[:, :, 0] | halves[:, :, 1] << 4).reshape(n, k // 2).astype(np.uint8)
    weights = (q - 8.0) * np.repeat(f64(scale).T, 128, 1)
    return Filled({"X": a, "W4": packed, "SC": scale, "Y": empty(m, n)}, {**x, "HALF": k // 2, "GR": k // 128}, {"Y": f64(a) @ weights.T})


EVERYDAY = (
    corpus("moe_pairs_gemm", ({"NT": 40, "NE": 3, "HID": 136, "FF": 72, "TOPK": 2}, {"NT": 5, "NE": 2, "HID": 8, "FF": 8, "TOPK": 3}), _pairs),
    corpus("gemm_int4_groups", ({"M": 20, "N": 256, "K": 384}, {"M": 1, "N": 128, "K": 128}), _int4, tolerance=1e-2),
    corpus("rope_kv_halves", ({"TOKENS": 6, "QH": 4, "KH": 2, "POSITIONS": 32, "SLOTS": 16}, {"TOKENS": 2, "QH": 1, "KH": 1, "POSITIONS": 3, "SLOTS": 3}), _rope),
    corpus("conv_silu_rounds", ({"BATCH": 2, "T": 21, "C": 512}, {"BATCH": 1, "T": 3, "C": 256}, {"BATCH": 1, "T": 16, "C": 256}), _conv),
    corpus("router_top2", ({"TOKENS": 70, "HID": 200}, {"TOKENS": 64, "HID": 64}), _router),
    corpus("decode_split_table", ({"B": 2, "HK": 2, "PAGES": 9, "MAXP": 5, "S": 2}, {"B": 1, "HK": 1, "PAGES": 2, "MAXP": 1, "S": 3}), _decode, tolerance=1e-2),
    corpus("tcgen05_mxf8_row_blocks", ({"M": 136, "N": 264, "K": 768}, {"M": 128, "N": 8, "K": 128}), _mxf8, tolerance=1e-2),
    corpus("layernorm_backward", ({"N": 11}, {"N": 3}), _norm_back, ctas=2),
    corpus("cross_entropy_grad", ({"B": 5, "V": 2504}, {"B": 2, "V": 64}), _loss),
    corpus("gemm_int8_row_scales", ({"R": 72, "C": 136, "K": 336}, {"R": 200, "C": 8, "K": 16}), _int8, ctas=2),
    corpus("swiglu_multicast", ({"T": 264, "H": 392, "I": 136}, {"T": 100, "H": 64, "I": 200}), _swiglu, ctas=2),
    corpus("tcgen05_pair_halves", ({"M": 264, "N": 264, "K": 328}, {"M": 500, "N": 8, "K": 64}), _pair, ctas=2),
)

"""Kernels that a stranger to the corpus wrote from the language page alone, to be judged before any rule was tuned to them: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np

from bench.verify.cases.case import BF16, E4M3, F16, F32, LOG2E, Array, Filled, corpus, empty, f64, normal, offsets

Axes = Mapping[str, Any]
E2M1 = ml_dtypes.float4_e2m1fn


def _attended(q: Array, k: Array, v: Array, scale: float) -> tuple[Array, float]:
    """One query over its keys: the result and the logarithm of the sum of exponentials."""
    z = k @ q * scale
    p = np.exp(z - z.max())
    return p @ v / p.sum(), float(z.max() + np.log(p.sum()))


def _decode(rng: np.random.Generator, x: Axes) -> Filled:
    lens, kvh, pages, g, d, page = x["lens"], x["KVH"], x["PAGES"], 16, 128, 16
    b, scale = len(lens), np.float32(0.09)
    slots = (b * pages + 2) * page
    q, k, v = normal(rng, b, kvh * g, d), normal(rng, slots, kvh, d), normal(rng, slots, kvh, d)
    table = rng.permutation(b * pages + 2)[: b * pages].astype(np.int32)
    out, lse = np.zeros((b, kvh * g, d)), np.full((b, kvh * g), -np.inf)
    for i, n in enumerate(lens):
        at = np.concatenate([np.arange(p * page, p * page + page) for p in table[i * pages : (i + 1) * pages]])[:n]
        for h in range(kvh * g if n else 0):
            out[i, h], lse[i, h] = _attended(f64(q[i, h]), f64(k[at, h // g]), f64(v[at, h // g]), float(scale))
    expected = {"out": out, "lse": lse}
    tensors = {"q": q, "kc": k, "vc": v, "table": table, "lens": np.array(lens, np.int32), "out": empty(b, kvh * g, d), "lse": empty(b, kvh * g, dtype=F32)}
    return Filled(tensors, {"B": b, "HEADS": kvh * g, "SLOTS": slots, "KVH": kvh, "PAGES": pages, "ENTRIES": b * pages, "scale": scale}, expected)


def _vocabulary(rng: np.random.Generator, x: Axes) -> Filled:
    t, v, d = x["T"], x["V"], 128
    h, w = normal(rng, t, d), (f64(normal(rng, v, d)) * 0.3).astype(BF16)
    if x.get("low"):  # a column too many is as heavy as all others together, for they lie below its zero
        h, w = np.abs(h), (-np.abs(f64(w)) * 0.2).astype(BF16)
    label = rng.integers(0, v, t).astype(np.int32)
    label[::5] = -1
    z = 30 * np.tanh(f64(h) @ f64(w).T / 30)
    lse = np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) + z.max(1)
    loss = np.where(label >= 0, lse - z[np.arange(t), np.maximum(label, 0)], 0)
    return Filled({"Hd": h, "Wv": w, "label": label, "loss": empty(t, dtype=F32), "lse": empty(t, dtype=F32)}, {"TOK": t, "V": v}, {"loss": loss, "lse": lse})


def _awq(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k, parts = x["M"], x["N"], x["K"], x["P"]
    g, a, w = k // 64, normal(rng, m, k, dtype=F16), rng.integers(0, 16, (n, k)).astype(np.uint8)
    halves = w.reshape(n, g, 2, 32)
    packed = (halves[:, :, 0] | (halves[:, :, 1] << 4)).reshape(n, k // 2).astype(np.uint8)
    scale, zero = (rng.random((g, n)) * 0.1 + 0.05).astype(F16), rng.integers(0, 16, (g, n)).astype(np.uint8)
    wide = ((w.reshape(n, g, 64).astype(float) - zero.T[:, :, None]) * f64(scale).T[:, :, None]).astype(F16).astype(float).reshape(n, k)
    cuts = [i * g // parts * 64 for i in range(parts + 1)]
    part = np.stack([f64(a[:, lo:hi]) @ wide[:, lo:hi].T for lo, hi in pairwise(cuts)])
    tensors = {"x": a, "qw": packed, "sc": scale, "zp": zero, "part": empty(parts, m, n, dtype=F32)}
    return Filled(tensors, {"M": m, "N": n, "K": k, "KHALF": k // 2, "G": g, "PARTS": parts}, {"part": part})


def _blocksparse(rng: np.random.Generator, x: Axes) -> Filled:
    n, heads, d, scale = x["S"], x["NH"], 64, np.float32(0.125)
    q, k, v = (normal(rng, n, heads * d) for _ in range(3))
    rows, blocks = -(-n // 64), -(-n // 32)
    listed = [[j for j in range(min(blocks, 2 * i + 2)) if rng.random() < (1 if x.get("dense") else 0.6)] if i != x.get("hole", -1) else [] for i in range(rows)]
    listed = listed if any(listed) else [[0], *[[]] * (rows - 1)]
    out = np.zeros((n, heads * d))
    for r in range(n):
        at = [c for j in listed[r // 64] for c in range(j * 32, j * 32 + 32) if c <= r]
        for h in (slice(i * d, i * d + d) for i in range(heads if at else 0)):
            out[r, h] = _attended(f64(q[r, h]), f64(k[at, h]), f64(v[at, h]), float(scale))[0]
    cols = np.array([j for row in listed for j in row], np.int32)
    tensors = {"q": q, "k": k, "v": v, "indptr": offsets(tuple(map(len, listed))), "cols": cols, "o": empty(n, heads * d)}
    return Filled(tensors, {"S": n, "NH": heads, "HD": heads * d, "NP": rows + 1, "NNZ": len(cols), "sm": scale}, {"o": out})


def _rope(rng: np.random.Generator, x: Axes) -> Filled:
    t, nq, nk, d, positions = x["T"], x["NQ"], x["NK"], 64, 50
    slots, angle = t + 5, rng.random((positions, d // 2)) * 6
    qkv, table = normal(rng, t, (nq + 2 * nk) * d), np.concatenate([np.cos(angle), np.sin(angle)], 1).astype(F32)
    pos, slot = rng.integers(0, positions, t).astype(np.int32), rng.permutation(slots)[:t].astype(np.int32)
    slot[::7] = -1
    lo, hi = f64(qkv)[:, : (nq + nk) * d].reshape(t, nq + nk, 2, d // 2).transpose(2, 0, 1, 3)
    c, s = f64(table)[pos, None, : d // 2], f64(table)[pos, None, d // 2 :]
    turned = np.concatenate([lo * c - hi * s, hi * c + lo * s], 2)
    keys, values, kept = np.zeros((slots, nk * d)), np.zeros((slots, nk * d)), slot >= 0
    keys[slot[kept]] = f64((turned[kept, nq:].reshape(-1, nk * d) * 0.5).astype(F32).astype(E4M3))
    values[slot[kept]] = f64((f64(qkv)[kept, (nq + nk) * d :] * 0.25).astype(F32).astype(E4M3))
    caches = {name: np.zeros((slots, nk * d), E4M3) for name in ("k_cache", "v_cache")}
    tensors = {"qkv": qkv, "cos_sin": table, "pos": pos, "slot": slot, "q_out": empty(t, nq * d), **caches}
    scalars = {"T": t, "W": (nq + 2 * nk) * d, "POS": positions, "QW": nq * d, "SLOTS": slots, "KW": nk * d, "NQ": nq, "NK": nk}
    return Filled(tensors, {**scalars, "k_inv": np.float32(0.5), "v_inv": np.float32(0.25)}, {"q_out": turned[:, :nq].reshape(t, -1), "k_cache": keys, "v_cache": values})


def _skinny(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k, parts = x["M"], x["N"], x["K"], x["P"]
    a, w, words = normal(rng, m, k), normal(rng, n, k), parts * -(-m // 16) * -(-n // 64)
    tensors = {"x": a, "w": w, "part": empty(parts, m, n, dtype=F32), "flags": np.zeros(words, np.int32), "y": empty(m, n)}
    return Filled(tensors, {"M": m, "N": n, "K": k, "PARTS": parts, "WORDS": words}, {"y": f64(a) @ f64(w).T})


def _prefill(rng: np.random.Generator, x: Axes) -> Filled:
    queries, keys, heads, d = x["lq"], x["lk"], x["HEADS"], 64
    cq, ck, scale = offsets(queries), offsets(keys), np.float32(0.125 * LOG2E)
    q, k, v = normal(rng, int(cq[-1]), heads * d), normal(rng, int(ck[-1]), heads // 2 * d), normal(rng, int(ck[-1]), heads // 2 * d)
    out = np.zeros((int(cq[-1]), heads * d))
    for b, (n, m) in enumerate(zip(queries, keys, strict=True)):
        for h in range(heads):
            own, shared = slice(h * d, h * d + d), slice(h // 2 * d, h // 2 * d + d)
            for r in range(n):
                seen = slice(ck[b], ck[b] + m - n + r + 1)
                out[cq[b] + r, own] = _attended(f64(q[cq[b] + r, own]), f64(k[seen, shared]), f64(v[seen, shared]), float(scale) / LOG2E)[0]
    scalars = {"TQ": len(q), "TK": len(k), "QW": heads * d, "KW": heads // 2 * d, "BP": len(queries) + 1, "HEADS": heads, "MAXQ": max(queries), "scale_log2": scale}
    return Filled({"Q": q, "K": k, "V": v, "cu_q": cq, "cu_k": ck, "O": empty(len(q), heads * d)}, scalars, {"O": out})


def _atoms(scales: Array) -> Array:
    """Scales of rows (a whole number of four a row) in atoms of 128 rows by one word: lane r mod 32, word r div 32."""
    rows, each = scales.shape
    full = np.zeros((-(-rows // 128) * 128, each), np.uint8)
    full[:rows] = scales.view(np.uint8)
    return np.ascontiguousarray(full.reshape(-1, 4, 32, each // 4, 4).transpose(0, 3, 2, 1, 4)).reshape(-1)


def _nvfp4(rng: np.random.Generator, x: Axes) -> Filled:
    lens, m, n, k = x["rows"], x["M"], x["N"], x["K"]
    values, e = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]), len(lens)

    def operand(rows: int) -> tuple[Array, Array, Array]:
        q = values[rng.integers(0, 8, (e, rows, k))] * rng.choice([-1, 1], (e, rows, k))
        f = rng.choice(np.array([0.5, 1, 1.5, 2, 3]), (e, rows, k // 16)).astype(E4M3)
        return q.astype(E2M1), np.concatenate([_atoms(one) for one in f]).view(E4M3), q * np.repeat(f64(f), 16, 2)

    (a, sa, wa), (b, sb, wb) = operand(m), operand(n)
    alpha, out = (rng.random(e) + 0.5).astype(F32), np.zeros((e, m, n))
    for i, r in enumerate(lens):
        out[i, :r] = wa[i, :r] @ wb[i].T * alpha[i]
    tensors = {"A": a, "SFA": sa, "B": b, "SFB": sb, "alpha": alpha, "rows": np.array(lens, np.int32), "C": np.zeros((e, m, n), BF16)}
    return Filled(tensors, {"E": e, "M": m, "N": n, "K": k, "NA": sa.size, "NB": sb.size}, {"C": out})


STRANGERS = (
    corpus("decode_cluster_merge", ({"lens": (140, 17, 1), "KVH": 2, "PAGES": 10}, {"lens": (0, 33), "KVH": 1, "PAGES": 3}), _decode, tolerance=1e-2),
    corpus("vocab_lse", ({"T": 150, "V": 130}, {"T": 300, "V": 24, "low": 1}), _vocabulary, params={"D": 128, "VB": 64, "KB": 64, "SLOTS": 3}, ctas=2, tolerance=1e-2),
    corpus("awq_split_k", ({"M": 19, "N": 128, "K": 448, "P": 2}, {"M": 5, "N": 64, "K": 64, "P": 3}), _awq, tolerance=1e-2),
    corpus("blocksparse_prefill", ({"S": 150, "NH": 2, "hole": 1}, {"S": 40, "NH": 1}, {"S": 150, "NH": 1, "dense": 1, "hole": 2}), _blocksparse, tolerance=1e-2),
    corpus("rope_qk_fp8_cache", ({"T": 37, "NQ": 3, "NK": 1}, {"T": 3, "NQ": 1, "NK": 2}), _rope, tolerance=4e-2),
    corpus("skinny_fixup", ({"M": 19, "N": 72, "K": 456, "P": 3}, {"M": 3, "N": 64, "K": 72, "P": 2}), _skinny, ctas=3, tolerance=1e-2),
    corpus("prefill_varlen_sm120", ({"lq": (70, 0, 5), "lk": (140, 10, 5), "HEADS": 2}, {"lq": (1, 20), "lk": (33, 20), "HEADS": 2}), _prefill, tolerance=1e-2),
    corpus("nvfp4_bmm_umma", ({"rows": (130, 0, 7), "M": 140, "N": 72, "K": 768}, {"rows": (3, 5, 1, 7), "M": 9, "N": 136, "K": 256}), _nvfp4, ctas=2, tolerance=1e-2),
)

"""Everyday kernels of serving and training, of a fifth stranger who had read the language page only: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, E4M3, F32, LOG2E, Filled, corpus, empty, f64, normal, softmax

Axes = Mapping[str, Any]


def _two_rings(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k, dtype=E4M3), normal(rng, n, k, dtype=E4M3)
    sa, sb = (rng.random((k // 128, m)) + 0.5).astype(F32), (rng.random((n // 128, k // 128)) + 0.5).astype(F32)
    want = (f64(a) * np.repeat(f64(sa).T, 128, 1)) @ (f64(b) * np.repeat(np.repeat(f64(sb), 128, 0), 128, 1)).T
    return Filled({"A": a, "B": b, "SA": sa, "SB": sb.reshape(-1), "C": empty(m, n)}, {"M": m, "N": n, "K": k, "KB": k // 128, "NKB": sb.size}, {"C": want})


def _paged(rng: np.random.Generator, x: Axes) -> Filled:
    lens, hkv, g, splits, most = np.array(x["lens"], np.int32), x["HKV"], 8, 3, x["MAXP"]
    b, pages, scale = len(lens), len(lens) * most, 128**-0.5
    q, k, v = normal(rng, b, hkv * g, 128), normal(rng, pages, hkv, 64, 128), normal(rng, pages, hkv, 64, 128)
    table = rng.permutation(pages).astype(np.int32)
    out, lse = np.zeros((b, hkv, g, splits, 128)), np.full((b, hkv, g, splits), -np.inf)
    for i in range(b):
        mine = table[i * most : i * most + -(-lens[i] // 64)]
        each = -(-len(mine) // splits)
        for s in range(splits):
            some = mine[s * each : s * each + each]
            keys = min(len(some) * 64, int(lens[i]) - s * each * 64)
            for h in range(hkv if len(some) else 0):
                rows, values = (f64(np.concatenate([c[p, h] for p in some]))[:keys] for c in (k, v))
                z = f64(q[i, h * g : h * g + g]) @ rows.T * scale
                out[i, h, :, s] = softmax(z) @ values
                lse[i, h, :, s] = (z.max(1) + np.log(np.exp(z - z.max(1, keepdims=True)).sum(1))) * LOG2E
    n = b * hkv * g
    tensors = {"Q": q, "Kc": k, "Vc": v, "table": table, "lens": lens, "Op": empty(n, splits, 128, dtype=F32), "Lse": empty(n, splits, dtype=F32)}
    scalars = {"B": b, "HQ": hkv * g, "HKV": hkv, "PAGES": pages, "MAXP": most, "BP": pages, "ROWS": n, "scale_log2": np.float32(scale * LOG2E)}
    return Filled(tensors, scalars, {"Op": out.reshape(n, splits, 128), "Lse": lse.reshape(n, splits)})


def _latent(rng: np.random.Generator, x: Axes) -> Filled:
    lens, most, scale = np.array(x["lens"], np.int32), x["MAXP"], 576**-0.5
    b, heads = len(lens), x["H"]
    q, kv, table = normal(rng, b, heads, 576), normal(rng, b * most, 64, 576), rng.permutation(b * most).astype(np.int32)
    want = np.zeros((b, heads, 512))
    for i, n in enumerate(lens):
        rows = f64(kv[table[i * most : i * most + -(-n // 64)]]).reshape(-1, 576)[:n]
        want[i] = softmax(f64(q[i]) @ rows.T * scale) @ rows[:, :512]
    scalars = {"B": b, "H": heads, "PAGES": b * most, "MAXP": most, "BP": b * most, "scale_log2": np.float32(scale * LOG2E)}
    return Filled({"Q": q, "KV": kv, "table": table, "lens": lens, "O": empty(b, heads, 512)}, scalars, {"O": want})


def _selected(rng: np.random.Generator, x: Axes) -> Filled:
    t, hkv, chosen, block, scale = x["T"], x["HKV"], 3, 64, 128**-0.5
    q, k, v = normal(rng, t, hkv * 16, 128), normal(rng, hkv, t, 128), normal(rng, hkv, t, 128)
    sel, want = np.full((hkv, t, chosen), -1, np.int32), np.zeros((t, hkv, 16, 128))
    for h in range(hkv):
        for i in range(t):
            take = [i // block, *rng.permutation(i // block)[: chosen - 1]]
            sel[h, i, : len(take)] = take
            cols = np.concatenate([np.arange(j * block, min(j * block + block, i + 1)) for j in take])
            want[i, h] = softmax(f64(q[i, h * 16 : h * 16 + 16]) @ f64(k[h, cols]).T * scale) @ f64(v[h, cols])
    tensors = {"Q": q, "K": k, "V": v, "sel": sel.reshape(-1), "O": empty(t, hkv * 16, 128)}
    return Filled(tensors, {"T": t, "HQ": hkv * 16, "HKV": hkv, "SEL": sel.size, "scale_log2": np.float32(scale * LOG2E)}, {"O": want.reshape(t, -1, 128)})


def _listed(rng: np.random.Generator, x: Axes) -> Filled:
    h, s, most, scale = x["H"], x["S"], 8, 128**-0.5
    tiles = -(-s // 128)
    q, k, v = normal(rng, h, s, 128), normal(rng, h // 2, s, 128), normal(rng, h // 2, s, 128)
    count, blocks, want = np.zeros((h, tiles), np.int32), np.zeros((h, tiles, most), np.int32), np.zeros((h, s, 128))
    for a in range(h):
        for i in range(tiles):
            take = rng.permutation([*rng.permutation(i)[: rng.integers(0, i + 1)], i])
            count[a, i], blocks[a, i, : len(take)] = len(take), take
            for r in range(i * 128, min(s, i * 128 + 128)):
                cols = np.concatenate([np.arange(b * 128, min(b * 128 + 128, r + 1)) for b in take])
                want[a, r] = softmax(f64(k[a // 2, cols]) @ f64(q[a, r]) * scale) @ f64(v[a // 2, cols])
    tensors = {"Q": q, "K": k, "V": v, "count": count.reshape(-1), "blocks": blocks.reshape(-1), "O": empty(h, s, 128)}
    return Filled(tensors, {"H": h, "HKV": h // 2, "S": s, "QT": tiles, "HT": h * tiles, "HTM": blocks.size, "scale_log2": np.float32(scale * LOG2E)}, {"O": want})


def _decode(rng: np.random.Generator, x: Axes) -> Filled:
    lens, s, scale = np.array(x["lens"], np.int32), max(x["lens"]) + 5, 128**-0.5
    b = len(lens)
    q, k, v = normal(rng, b, 16, 128), normal(rng, b, s, 128), normal(rng, b, s, 128)
    want = np.stack([softmax(f64(q[i]) @ f64(k[i, :n]).T * scale) @ f64(v[i, :n]) for i, n in enumerate(lens)])
    return Filled({"Q": q, "K": k, "V": v, "lens": lens, "O": empty(b, 16, 128)}, {"B": b, "S": s, "scale_log2": np.float32(scale * LOG2E)}, {"O": want})


def _norm_backward(rng: np.random.Generator, x: Axes) -> Filled:
    rows, d, each = x["ROWS"], 1024, 8
    parts = -(-rows // each)
    a, dy, gamma = normal(rng, rows, d), normal(rng, rows, d), (rng.random(d) + 0.5).astype(F32)
    mean, rstd = f64(a).mean(1).astype(F32), (1 / np.sqrt(f64(a).var(1) + 1e-5)).astype(F32)
    xh, dxh = (f64(a) - f64(mean)[:, None]) * f64(rstd)[:, None], f64(dy) * f64(gamma)
    dx = (dxh - xh * (dxh * xh).mean(1, keepdims=True) - dxh.mean(1, keepdims=True)) * f64(rstd)[:, None]
    sums = {n: np.stack([g[p * each : p * each + each].sum(0) for p in range(parts)]) for n, g in (("dG", f64(dy) * xh), ("dB", f64(dy)))}
    tensors = {"dY": dy, "X": a, "gamma": gamma, "mean": mean, "rstd": rstd, "dX": empty(rows, d), **{n: empty(parts, d, dtype=F32) for n in sums}}
    return Filled(tensors, {"ROWS": rows, "PARTS": parts}, {"dX": dx, **sums})


def _entropy(rng: np.random.Generator, x: Axes) -> Filled:
    rows, v = x["ROWS"], x["V"]
    a, y = normal(rng, rows, v), rng.integers(0, v, rows).astype(np.int32)
    y[rows // 2] = -100
    kept, z, p = y != -100, f64(a), softmax(f64(a))
    at, n = (np.arange(rows), np.maximum(y, 0)), int((y != -100).sum())
    loss = np.where(kept, np.log(np.exp(z).sum(1)) - z[at], 0)
    p[at] -= 1
    tensors = {"X": a, "flat": a.reshape(-1), "target": y, "loss": empty(rows, dtype=F32), "dX": empty(rows, v, dtype=BF16)}
    return Filled(tensors, {"ROWS": rows, "V": v, "RV": a.size, "inv_n": np.float32(1 / n)}, {"loss": loss, "dX": p * kept[:, None] / n})


FRONTIER = (
    corpus("fp8_two_rings", ({"M": 200, "N": 256, "K": 512}, {"M": 70, "N": 640, "K": 128}), _two_rings, params={"STAGES": 2}, ctas=2),
    corpus("paged_decode_gqa", ({"lens": (700, 0, 65), "HKV": 2, "MAXP": 11}, {"lens": (1, 64), "HKV": 1, "MAXP": 2}), _paged, params={"SPLITS": 3}, tolerance=1e-2),
    corpus("mla_two_groups", ({"lens": (200, 64), "H": 128, "MAXP": 4}, {"lens": (1,), "H": 64, "MAXP": 1}), _latent, tolerance=1e-2),
    corpus("nsa_by_warps", ({"T": 70, "HKV": 1}, {"T": 6, "HKV": 2}), _selected, params={"NSEL": 3}, tolerance=1e-2),
    corpus("moba_lists", ({"H": 2, "S": 400}, {"H": 4, "S": 90}), _listed, ctas=2, tolerance=1e-2),
    corpus("decode_by_warps", ({"lens": (300, 1, 129)}, {"lens": (40,)}), _decode, tolerance=1e-2),
    corpus("layernorm_bwd_parts", ({"ROWS": 19}, {"ROWS": 3}), _norm_backward, tolerance=1e-2),
    corpus("cross_entropy_ignored", ({"ROWS": 4, "V": 2504}, {"ROWS": 3, "V": 40}), _entropy, ctas=2, tolerance=1e-2),
)

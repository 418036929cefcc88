"""Attention as serving engines run it: latent caches, chosen blocks, pages, tables of tokens, sinks; arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import F32, LOG2E, Array, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def _i32(x: Any) -> Array:
    return np.asarray(x, np.int32)


def _mla(rng: np.random.Generator, x: Axes) -> Filled:
    lens, splits = x["lens"], 4
    n, most = len(lens), max(1, max(-(-length // 64) for length in lens))
    pages, scale = n * most + 2, 576**-0.5
    q, kv, table = normal(rng, n, 64, 576), normal(rng, pages, 64, 576), _i32(rng.permutation(pages)[: n * most])
    out, lse = np.zeros((n * splits, 64, 512)), np.full((n * splits, 64), -np.inf)
    for b, length in enumerate(lens):
        blocks = -(-length // 64)
        per, k = -(-blocks // splits), f64(kv[table[b * most : (b + 1) * most]]).reshape(-1, 576)
        for s in range(splits):
            lo, hi = min(s * per, blocks) * 64, min(min((s + 1) * per, blocks) * 64, length)
            if lo < hi:
                z = f64(q[b]) @ k[lo:hi].T * scale
                out[b * splits + s], lse[b * splits + s] = softmax(z) @ k[lo:hi, :512], np.log(np.exp(z).sum(1)) * LOG2E
    tensors = {"Q": q, "KV": kv, "TABLE": table, "LEN": _i32(lens), "OP": empty(n * splits, 64, 512, dtype=F32), "LSE": empty(n * splits, 64, dtype=F32)}
    scalars = {"B": n, "PAGES": pages, "MAXPAGES": most, "ENTRIES": n * most, "BS": n * splits, "scale": scale}
    return Filled(tensors, scalars, {"OP": out, "LSE": lse})


def _chosen(rng: np.random.Generator, x: Axes) -> Filled:
    t, h, d, top = x["T"], x["HK"], 64, 4
    q, k, v = normal(rng, t, h, 64, d), normal(rng, t, h, d), normal(rng, t, h, d)
    blocks, counts, out = np.zeros((t, h, top), np.int32), np.zeros((t, h), np.int32), np.zeros((t, h, 64, d))
    for i in range(t):
        for g in range(h):
            mine = [i // 64, *(int(b) for b in rng.permutation(i // 64)[: top - 1])]
            blocks[i, g, : len(mine)], counts[i, g] = mine, len(mine)
            keys = np.concatenate([np.arange(b * 64, min(b * 64 + 64, t)) for b in mine])
            keys = keys[keys <= i]
            out[i, g] = softmax(f64(q[i, g]) @ f64(k[keys, g]).T * d**-0.5) @ f64(v[keys, g])
    tensors = {"Q": q, "K": k, "V": v, "BLOCK": blocks.ravel(), "COUNT": counts.ravel(), "O": empty(t, h, 64, d)}
    return Filled(tensors, {"T": t, "S": t, "HK": h, "NI": t * h * top, "NC": t * h, "scale": d**-0.5}, {"O": out})


def _sinks(rng: np.random.Generator, x: Axes) -> Filled:
    s, hk, group, d, window = x["S"], x["HK"], 2, 64, 64
    h = hk * group
    q, k, v, sink = normal(rng, h, s, d), normal(rng, hk, s, d), normal(rng, hk, s, d), rng.standard_normal(h).astype(F32)
    at, out = np.arange(s), np.zeros((h, s, d))
    seen = (at[None] <= at[:, None]) & (at[None] + window > at[:, None])
    for i in range(h):
        z = np.where(seen, f64(q[i]) @ f64(k[i // group]).T * d**-0.5, -np.inf)
        out[i] = softmax(np.concatenate([z, np.full((s, 1), sink[i])], 1))[:, :-1] @ f64(v[i // group])
    return Filled({"Q": q, "K": k, "V": v, "SINK": sink, "O": empty(h, s, d)}, {"BH": h, "BHK": hk, "H": h, "S": s, "scale": d**-0.5}, {"O": out})


def _paged(rng: np.random.Generator, x: Axes) -> Filled:
    rows, keys, hk, group, d, ps = x["q"], x["kv"], x["HK"], 2, 64, 64
    h, n, cu = hk * group, len(x["q"]), offsets(x["q"])
    first = offsets(tuple(-(-length // ps) for length in keys))
    t, entries = max(1, int(cu[-1])), max(1, int(first[-1]))
    pages = entries + 3
    index, kc, vc, q = _i32(rng.permutation(pages)[:entries]), normal(rng, pages, ps, hk, d), normal(rng, pages, ps, hk, d), normal(rng, t, h, d)
    out = np.zeros((t, h, d))
    for b in range(n):
        mine = index[first[b] : first[b + 1]]
        k, v = (f64(c[mine]).reshape(-1, hk, d)[: keys[b]] for c in (kc, vc))
        seen = np.arange(keys[b])[None] <= np.arange(rows[b])[:, None] + keys[b] - rows[b]
        for i in range(h if rows[b] else 0):
            z = np.where(seen, f64(q[cu[b] : cu[b + 1], i]) @ k[:, i // group].T * d**-0.5, -np.inf)
            out[cu[b] : cu[b + 1], i] = softmax(z) @ v[:, i // group]
    tensors = {"Q": q, "KC": kc, "VC": vc, "O": empty(t, h, d), "CUQ": cu, "KVLEN": _i32(keys), "INDPTR": first, "INDEX": index}
    return Filled(tensors, {"T": t, "H": h, "HK": hk, "PAGES": pages, "NS": n, "NS1": n + 1, "NP": entries, "scale": d**-0.5}, {"O": out})


def _tokens(rng: np.random.Generator, x: Axes) -> Filled:
    lens, hk, group, d, slots = x["lens"], x["HK"], 16, 64, 200
    n, h, most = len(lens), x["HK"] * 16, max(lens)
    table, q, k, v = _i32(rng.integers(0, slots, (n, most))), normal(rng, n, h, d), normal(rng, slots, hk, d), normal(rng, slots, hk, d)
    out = np.zeros((n, h, d))
    for b in range(n):
        mine = table[b, : lens[b]]
        for i in range(h):
            out[b, i] = softmax(f64(q[b, i]) @ f64(k[mine, i // group]).T * d**-0.5) @ f64(v[mine, i // group])
    tensors = {"Q": q, "KC": k, "VC": v, "LEN": _i32(lens), "TABLE": table, "O": empty(n, h, d)}
    return Filled(tensors, {"B": n, "HQ": h, "HK": hk, "SLOTS": slots, "MAXL": most, "scale": d**-0.5}, {"O": out})


def _sparse(rng: np.random.Generator, x: Axes) -> Filled:
    t, top, slots, scale = x["T"], 128, 150, 576**-0.5
    q, kv = normal(rng, t, 64, 576), normal(rng, slots, 576)
    index = _i32(np.stack([rng.permutation(slots)[:top] for _ in range(t)]))
    index[:, ::7] = -1
    out = np.stack([softmax(f64(q[i]) @ f64(kv[c]).T * scale) @ f64(kv[c, :512]) for i in range(t) for c in (index[i][index[i] >= 0],)])
    return Filled({"Q": q, "KV": kv, "IDX": index, "O": empty(t, 64, 512)}, {"T": t, "SLOTS": slots, "scale": scale}, {"O": out})


def _moved(rng: np.random.Generator, x: Axes) -> Filled:
    n, h, d, ps = x["NB"], x["HK"], 128, 64
    pages = n + 3
    keys, page, want = normal(rng, n * ps, h, d), _i32(rng.permutation(pages)[:n]), np.zeros((pages, h, ps, d))
    for i, at in enumerate(page):
        want[at] = np.swapaxes(f64(keys[i * ps : (i + 1) * ps]), 0, 1)
    return Filled({"X": keys, "CACHE": np.zeros_like(want, keys.dtype), "PAGE": page}, {"T": n * ps, "HK": h, "PAGES": pages, "NB": n}, {"CACHE": want})


SERVING = (
    corpus("mla_decode_split", ({"lens": (200, 70)}, {"lens": (0, 520), "ctas": 1}), _mla, ctas=2, tolerance=1e-2),
    corpus("nsa_selected", ({"T": 131, "HK": 1}, {"T": 5, "HK": 2, "ctas": 1}), _chosen, params={"D": 64, "TOPN": 4}, ctas=2, tolerance=1e-2),
    corpus("window_sinks", ({"S": 300, "HK": 1}, {"S": 64, "HK": 2, "ctas": 1}), _sinks, params={"D": 64, "BN": 64, "WINDOW": 64, "GROUP": 2}, ctas=2, tolerance=1e-2),
    corpus("paged_prefill", ({"q": (70, 0, 3), "kv": (200, 5, 3), "HK": 1}, {"q": (1, 1, 1), "kv": (64, 1, 130), "HK": 1, "ctas": 1}), _paged, params={"D": 64, "GROUP": 2}, ctas=2, tolerance=1e-2),
    corpus("decode_cp_async_gqa", ({"lens": (200, 5, 64), "HK": 2}, {"lens": (1,), "HK": 1}), _tokens, tolerance=1e-2),
    corpus("sparse_mla_gather", ({"T": 3}, {"T": 2, "ctas": 1}), _sparse, params={"TOPK": 128}, ctas=2, tolerance=1e-2),
    corpus("kv_page_store", ({"NB": 5, "HK": 3}, {"NB": 4, "HK": 1, "ctas": 1}), _moved, ctas=2),
)  # fmt: skip

"""Further schedules of the seventh stranger: three roles in a chain, sparse rows, pages, neighbours, group norm in clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import F32, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def _gelu(z: Any) -> Any:
    return 0.5 * z * (1 + np.tanh(0.79788456 * (z + 0.044715 * z**3)))


def _chain(rng: np.random.Generator, x: Axes) -> Filled:
    m, f = x["M"], x["F"]
    a, b = normal(rng, m, f), normal(rng, f, dtype=F32)
    return Filled({"X": a, "B": b, "Y": empty(m, f)}, {"M": m, "F": f}, {"Y": _gelu(f64(a) + f64(b))})


def _added(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k), normal(rng, n, k)
    return Filled({"A": a, "B": b, "C": np.zeros((m, n), F32)}, {"M": m, "N": n, "K": k}, {"C": f64(a) @ f64(b).T})


def _long_rows(rng: np.random.Generator, x: Axes) -> Filled:
    r, n = x["R"], x["N"]
    a = normal(rng, r, n, dtype=F32)
    tensors = {"X": a, "Y": empty(r, n, dtype=F32), "MX": empty(r, dtype=F32), "SM": empty(r, dtype=F32), "DONE": np.zeros(r, np.int32)}
    return Filled(tensors, {"R": r, "N": n}, {"Y": softmax(f64(a))})


def _sparse(rng: np.random.Generator, x: Axes) -> Filled:
    lens, v, d = x["lens"], x["V"], x["D"]
    ptr, nnz, r = offsets(lens), sum(lens), len(lens)
    col, val, a = rng.integers(0, v, nnz).astype(np.int32), normal(rng, nnz, dtype=F32), normal(rng, v, d, dtype=F32)
    dense = np.zeros((r, v))
    np.add.at(dense, (np.repeat(np.arange(r), lens), col), f64(val))
    tensors = {"PTR": ptr, "COL": col, "VAL": val, "X": a, "Y": empty(r, d, dtype=F32)}
    return Filled(tensors, {"R": r, "R1": r + 1, "NNZ": nnz, "V": v, "D": d}, {"Y": dense @ f64(a)})


def _group_norm(rng: np.random.Generator, x: Axes) -> Filled:
    b, p, c = x["NB"], x["P"], x["C"]
    a, gamma, beta = normal(rng, b, p, c), normal(rng, c, dtype=F32), normal(rng, c, dtype=F32)
    g = f64(a).reshape(b, p, c // 64, 64)
    mean, var = g.mean((1, 3), keepdims=True), g.var((1, 3), keepdims=True)
    y = ((g - mean) / np.sqrt(var + 1e-5)).reshape(b, p, c) * f64(gamma) + f64(beta)
    return Filled({"X": a, "GAMMA": gamma, "BETA": beta, "Y": empty(b, p, c)}, {"NB": b, "P": p, "C": c, "eps": 1e-5}, {"Y": y})


def _whole_bytes(rng: np.random.Generator, x: Axes) -> Filled:
    b, hq, s, lens = len(x["lens"]), x["HQ"], x["S"], x["lens"]
    q, kc, vc = normal(rng, b, hq, 128), rng.integers(-127, 128, (b, s, 128)).astype(np.int8), rng.integers(-127, 128, (b, s, 128)).astype(np.int8)
    ks, vs = (rng.random((b, s)) * 0.01 + 0.005).astype(F32), (rng.random((b, s)) * 0.01 + 0.005).astype(F32)
    o = np.zeros((b, hq, 128))
    for i, n in enumerate(lens):
        z = f64(q)[i] @ (f64(kc) * f64(ks)[..., None])[i, :n].T * 0.09
        o[i] = softmax(z) @ (f64(vc) * f64(vs)[..., None])[i, :n]
    tensors = {"Q": q, "KC": kc, "VC": vc, "KS": ks, "VS": vs, "LEN": np.array(lens, np.int32), "O": empty(b, hq, 128)}
    return Filled(tensors, {"B": b, "HQ": hq, "S": s, "scale": 0.09}, {"O": o})


def _paged(rng: np.random.Generator, x: Axes) -> Filled:
    lens, hq, hk = x["lens"], x["HQ"], x["HK"]
    b, maxp = len(lens), max(-(-n // 16) for n in lens)
    pages = b * maxp + 1
    q, kc, vc = normal(rng, b, hq, 128), normal(rng, pages, hk, 16, 128), normal(rng, pages, hk, 16, 128)
    table, o = rng.permutation(pages)[: b * maxp].astype(np.int32), np.zeros((b, hq, 128))
    for i, n in enumerate(lens):
        for h in range(hq):
            k, v = (f64(c)[table[i * maxp : (i + 1) * maxp], h * hk // hq].reshape(-1, 128)[:n] for c in (kc, vc))
            o[i, h] = softmax(f64(q)[i, h] @ k.T * 0.09) @ v
    tensors = {"Q": q, "KC": kc, "VC": vc, "TABLE": table, "LEN": np.array(lens, np.int32), "O": empty(b, hq, 128)}
    return Filled(tensors, {"PAGES": pages, "B": b, "HQ": hq, "HK": hk, "MAXP": maxp, "BP": b * maxp, "scale": 0.09}, {"O": o})


def _rotated(rng: np.random.Generator, x: Axes) -> Filled:
    t, hq, hk, p, slots = x["T"], x["HQ"], x["HK"], x["P"], x["SLOTS"]
    h3 = hq + 2 * hk
    qkv, pos, slot = normal(rng, t, h3, 128), rng.integers(0, p, t).astype(np.int32), rng.permutation(slots)[:t].astype(np.int32)
    slot[0] = -1
    angle = rng.random((p, 64)) * 6
    c, s = np.cos(angle).astype(F32), np.sin(angle).astype(F32)
    kc, vc = normal(rng, slots, hk, 128), normal(rng, slots, hk, 128)
    lo, hi, cc, ss = f64(qkv)[..., :64], f64(qkv)[..., 64:], f64(c)[pos][:, None], f64(s)[pos][:, None]
    turned = np.concatenate([lo * cc - hi * ss, hi * cc + lo * ss], -1)
    after, k2, v2, use = f64(qkv).copy(), f64(kc).copy(), f64(vc).copy(), slot >= 0
    after[:, :hq] = turned[:, :hq]
    k2[slot[use]], v2[slot[use]] = turned[use, hq : hq + hk], f64(qkv)[use, hq + hk :]
    tensors = {"QKV": qkv, "POS": pos, "COS": c, "SIN": s, "SLOT": slot, "KC": kc, "VC": vc}
    return Filled(tensors, {"T": t, "HQ": hq, "HK": hk, "H3": h3, "P": p, "SLOTS": slots}, {"QKV": after, "KC": k2, "VC": v2})


def _few_rows(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k), normal(rng, n, k)
    return Filled({"A": a, "B": b, "C": empty(m, n)}, {"M": m, "N": n, "K": k}, {"C": f64(a) @ f64(b).T})


def _nearest(rng: np.random.Generator, x: Axes) -> Filled:
    m, n = x["M"], x["N"]
    q, a = normal(rng, m, 128), normal(rng, n, 128)
    norm = (f64(a) ** 2).sum(1).astype(F32)
    d = f64(norm) - 2 * f64(q) @ f64(a).T
    best = np.argsort(d, 1, kind="stable")[:, :8]
    tensors = {"Q": q, "X": a, "NORM": norm, "DIST": empty(m, 8, dtype=F32), "IDX": empty(m, 8, dtype=np.int32)}
    return Filled(tensors, {"M": m, "N": n}, {"DIST": np.take_along_axis(d, best, 1), "IDX": best.astype(np.int32)})


def _causal(rng: np.random.Generator, x: Axes) -> Filled:
    lens, d = x["lens"], x["D"]
    t, cu = sum(lens), offsets(lens)
    a, w, y = normal(rng, t, d), normal(rng, 4, d, dtype=F32), np.zeros((t, d))
    for g in range(len(lens)):
        seq = np.concatenate([np.zeros((3, d)), f64(a)[cu[g] : cu[g + 1]]])
        y[cu[g] : cu[g + 1]] = sum(seq[i : i + lens[g]] * f64(w)[i] for i in range(4))
    tensors = {"X": a, "START": np.repeat(cu[:-1], lens).astype(np.int32), "WT": w.reshape(-1), "Y": empty(t, d)}
    return Filled(tensors, {"T": t, "D": d, "D4": 4 * d}, {"Y": y / (1 + np.exp(-y))})


def _beams(rng: np.random.Generator, x: Axes) -> Filled:
    lens, s, d = x["lens"], x["S"], x["D"]
    b, bw = len(lens), 4 * len(lens)
    src, parent = normal(rng, bw, s, d), rng.integers(0, 4, bw).astype(np.int32)
    want = np.ones((bw, s, d))
    for w in range(bw):
        n = lens[w // 4]
        want[w, :n] = f64(src)[w // 4 * 4 + parent[w], :n]
    tensors = {"SRC": src, "PARENT": parent, "LEN": np.array(lens, np.int32), "DST": np.ones((bw, s, d), src.dtype)}
    return Filled(tensors, {"BW": bw, "B": b, "S": s, "D": d}, {"DST": want})


GUESTS_MORE = (
    corpus("three_role_chain", ({"M": 200, "F": 192}, {"M": 300, "F": 64, "ctas": 1}), _chain, params={"STAGES": 2}, ctas=2),
    corpus("splitk_reduce_add", ({"M": 200, "N": 72, "K": 600}, {"M": 300, "N": 64, "K": 64}), _added, params={"STAGES": 2}, ctas=2),
    corpus("softmax_parts_flags", ({"R": 2, "N": 1300}, {"R": 3, "N": 100}), _long_rows, params={"CHUNK": 512}, ctas=2),
    corpus("csr_spmm", ({"lens": (3, 0, 7, 1, 2, 5), "V": 9, "D": 136}, {"lens": (2,), "V": 3, "D": 128}), _sparse),
    corpus("groupnorm_nhwc_cluster", ({"NB": 1, "P": 150, "C": 128}, {"NB": 1, "P": 50, "C": 64}), _group_norm, tolerance=1e-2),
    corpus("int8_kv_decode", ({"lens": (150, 20), "HQ": 12, "S": 160}, {"lens": (40, 64), "HQ": 16, "S": 64}), _whole_bytes, tolerance=1e-2),
    corpus("paged16_decode", ({"lens": (150, 20), "HQ": 8, "HK": 2}, {"lens": (17, 64), "HQ": 2, "HK": 2}), _paged, params={"STAGES": 2}, ctas=2, tolerance=1e-2),
    corpus("beam_gather_kv", ({"lens": (9, 30), "S": 30, "D": 264}, {"lens": (3,), "S": 4, "D": 64}), _beams),
    corpus("rope_inplace_append", ({"T": 5, "HQ": 4, "HK": 2, "P": 32, "SLOTS": 9}, {"T": 3, "HQ": 1, "HK": 1, "P": 7, "SLOTS": 4}), _rotated, ctas=2),
    corpus("gemm_pdl_prefetch", ({"M": 100, "N": 136, "K": 328}, {"M": 7, "N": 40, "K": 64}), _few_rows, params={"STAGES": 2}),
    corpus("knn_topk_ring", ({"M": 150, "N": 200}, {"M": 300, "N": 50}), _nearest, params={"STAGES": 2}, ctas=2, tolerance=1e-2),
    corpus("causal_conv_varlen", ({"lens": (30, 3, 1, 20), "D": 136}, {"lens": (5, 9), "D": 64}), _causal),
)

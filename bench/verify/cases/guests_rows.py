"""Row kernels, scans and sorts of a seventh stranger who had read the language page only: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from bench.verify.cases.case import BF16, E4M3, F32, Filled, corpus, empty, f64, normal

Axes = Mapping[str, Any]


def _scattered(rng: np.random.Generator, x: Axes) -> Filled:
    t, d, v = x["T"], x["D"], x["V"]
    dy, ids = normal(rng, t, d, dtype=F32), rng.integers(0, v, t).astype(np.int32)
    want = np.zeros((v, d))
    np.add.at(want, ids[ids != 1], f64(dy)[ids != 1])
    return Filled({"DY": dy, "IDX": ids, "DW": np.zeros((v, d), F32)}, {"T": t, "D": d, "V": v, "PAD": 1}, {"DW": want})


def _norm_back(rng: np.random.Generator, x: Axes) -> Filled:
    r, d = x["R"], 512
    dy, a, gamma = normal(rng, r, d), normal(rng, r, d), normal(rng, d, dtype=F32)
    mean = f64(a).mean(1).astype(F32)
    rstd = (1 / np.sqrt(f64(a).var(1) + 1e-5)).astype(F32)
    hat, y = (f64(a) - f64(mean)[:, None]) * f64(rstd)[:, None], f64(dy)
    w = y * f64(gamma)
    dx = (w - hat * (w * hat).mean(1, keepdims=True) - w.mean(1, keepdims=True)) * f64(rstd)[:, None]
    tensors = {"DY": dy, "X": a, "GAMMA": gamma, "MEAN": mean, "RSTD": rstd, "DX": empty(r, d), "DG": np.zeros(d, F32), "DB": np.zeros(d, F32)}
    return Filled(tensors, {"R": r}, {"DX": dx, "DG": (y * hat).sum(0), "DB": y.sum(0)})


def _counted(rng: np.random.Generator, x: Axes) -> Filled:
    n, e = x["N"], x["E"]
    ids = rng.integers(0, e, n).astype(np.int32)
    count = np.bincount(ids, minlength=256).astype(np.int32)
    padded = -(-count // 16) * 16
    first = (np.cumsum(padded) - padded).astype(np.int32)
    tensors = {"IDS": ids, "COUNT": empty(256, dtype=np.int32), "FIRST": empty(256, dtype=np.int32), "TOTAL": empty(1, dtype=np.int32)}
    return Filled(tensors, {"N": n, "E": e}, {"COUNT": count, "FIRST": first, "TOTAL": np.array([padded.sum()], np.int32)})


def _aligned(rng: np.random.Generator, x: Axes) -> Filled:
    n, e = x["N"], x["E"]
    ids = rng.integers(0, e, n).astype(np.int32)
    padded = -(-np.bincount(ids, minlength=e) // 16) * 16
    first = np.concatenate([[0], np.cumsum(padded)]).astype(np.int32)
    cap = int(first[-1])
    order, owner = np.full(cap, n, np.int32), np.repeat(np.arange(e), padded // 16).astype(np.int32)
    for g in range(e):
        mine = np.flatnonzero(ids == g)
        order[first[g] : first[g] + len(mine)] = mine
    tensors = {"IDS": ids, "FIRST": first, "SORTED": empty(cap, dtype=np.int32), "OWNER": empty(cap // 16, dtype=np.int32)}
    return Filled(tensors, {"N": n, "E": e, "E1": e + 1, "CAP": cap, "NB": cap // 16}, {"SORTED": order, "OWNER": owner})


def _chained(rng: np.random.Generator, x: Axes) -> Filled:
    r, n = x["R"], x["N"]
    a, ch = rng.random((r, n)).astype(F32), -(-n // 1024)
    tensors = {"X": a, "Y": empty(r, n, dtype=F32), "CARRY": empty(r * ch, dtype=F32), "FLAG": np.zeros(r * ch, np.int32)}
    return Filled(tensors, {"R": r, "N": n, "CH": ch, "WORDS": r * ch}, {"Y": np.cumsum(f64(a), 1)})


def _fp8(x: Any) -> tuple[Any, Any]:
    """A block's numbers in e4m3 and its scale."""
    s = (np.abs(x).max(1) / 448).astype(F32)
    return (x / s[:, None]).astype(F32).astype(E4M3), s


def _stepped(rng: np.random.Generator, x: Axes) -> Filled:
    nb = x["NB"]
    p, g, (m, sm), (v, sv) = normal(rng, nb, 128, dtype=F32), normal(rng, nb, 128), _fp8(rng.standard_normal((nb, 128))), _fp8(rng.random((nb, 128)) + 0.1)
    b1, b2, lr, eps, decay, f1, f2 = 0.9, 0.98, 0.05, 1e-6, 0.1, 1.2, 1.1
    m2 = b1 * f64(m) * f64(sm)[:, None] + (1 - b1) * f64(g)
    root = np.sqrt(b2 * (f64(v) * f64(sv)[:, None]) ** 2 + (1 - b2) * f64(g) ** 2)
    p2 = f64(p) - lr * (m2 * f1 / (root * f2 + eps) + decay * f64(p))
    tensors = {"P": p, "G": g, "M": m, "V": v, "SM": sm, "SV": sv, "W": empty(nb, 128)}
    scalars = {"NB": nb, "lr": lr, "beta1": b1, "beta2": b2, "eps": eps, "decay": decay, "fix1": f1, "fix2": f2}
    s1, s2 = np.abs(m2).max(1) / 448, root.max(1) / 448
    return Filled(tensors, scalars, {"P": p2, "W": p2, "SM": s1, "SV": s2, "M": m2 / s1[:, None], "V": root / s2[:, None]})


def _cached(rng: np.random.Generator, x: Axes) -> Filled:
    t, slots, hd = x["T"], x["SLOTS"], 1024
    k, v, slot = normal(rng, t, hd), normal(rng, t, hd), rng.permutation(slots)[:t].astype(np.int32)
    slot[1] = -1
    old = normal(rng, 2, slots, hd, dtype=E4M3)
    kc, vc, use = f64(old[0]).copy(), f64(old[1]).copy(), slot >= 0
    kc[slot[use]], vc[slot[use]] = f64(k)[use] * 0.5, f64(v)[use] * 0.75
    tensors = {"K": k, "V": v, "SLOT": slot, "KC": old[0].copy(), "VC": old[1].copy()}
    return Filled(tensors, {"T": t, "SLOTS": slots, "ks": 0.5, "vs": 0.75}, {"KC": kc, "VC": vc})


def _normed(rng: np.random.Generator, x: Axes) -> Filled:
    r, d = x["R"], 1024
    a, res, gamma = normal(rng, r, d), normal(rng, r, d), normal(rng, d, dtype=F32)
    h = (f64(a) + f64(res)).astype(F32).astype(BF16)
    y = f64(h) / np.sqrt((f64(h) ** 2).mean(1, keepdims=True) + 1e-5) * f64(gamma)
    s = np.abs(y).max(1) / 448
    tensors = {"X": a, "RES": res, "GAMMA": gamma, "Y": empty(r, d, dtype=E4M3), "S": empty(r, dtype=F32)}
    return Filled(tensors, {"R": r, "eps": 1e-5}, {"RES": f64(h), "Y": y / s[:, None], "S": s})


def _unsilu(rng: np.random.Generator, x: Axes) -> Filled:
    m, f = x["M"], x["F"]
    dh, gu = normal(rng, m, f), normal(rng, m, 2 * f)
    g, u, d = f64(gu)[:, :f], f64(gu)[:, f:], f64(dh)
    s = 1 / (1 + np.exp(-g))
    want = np.concatenate([d * u * s * (1 + g * (1 - s)), d * g * s], 1)
    return Filled({"DH": dh, "GU": gu, "DGU": empty(m, 2 * f)}, {"M": m, "F": f, "F2": 2 * f}, {"DGU": want})


def _balanced(rng: np.random.Generator, x: Axes) -> Filled:
    t = x["T"]
    a = normal(rng, t, 16, 16, dtype=F32)
    y = np.exp(f64(a) - f64(a).max(2, keepdims=True))
    for _ in range(3):
        y = y / (y.sum(2, keepdims=True) + 1e-8)
        y = y / (y.sum(1, keepdims=True) + 1e-8)
    return Filled({"X": a, "Y": empty(t, 16, 16, dtype=F32)}, {"T": t}, {"Y": y})


def _merged(rng: np.random.Generator, x: Axes) -> Filled:
    s, b, h, n = x["S"], x["B"], x["H"], np.array(x["n"], np.int32)
    po, pl = normal(rng, s, b, h, 128, dtype=F32), normal(rng, s, b, h, dtype=F32) * 2
    gone = np.arange(s)[:, None, None] >= n[None, :, None]
    po[gone[..., 0]], pl[np.broadcast_to(gone, pl.shape)] = np.nan, np.nan
    z = np.where(gone, -np.inf, f64(pl))
    lse = np.logaddexp.reduce(z, 0)
    o = (np.exp(z - lse)[..., None] * np.where(gone[..., None], 0, f64(po))).sum(0)
    tensors = {"PO": po, "PL": pl.astype(F32), "NSPLIT": n, "O": empty(b, h, 128), "LSE": empty(b, h, dtype=F32)}
    return Filled(tensors, {"S": s, "B": b, "H": h}, {"O": o, "LSE": lse})


def _microscaled(rng: np.random.Generator, x: Axes) -> Filled:
    m, k = x["M"], x["K"]
    a = normal(rng, m, k)
    top = np.abs(f64(a)).reshape(m, k // 32, 32).max(2)
    s = 2.0 ** np.ceil(np.log2(top / 448))
    y = (f64(a) / np.repeat(s, 32, 1)).astype(F32).astype(E4M3)
    tensors = {"X": a, "Y": empty(m, k, dtype=E4M3), "S": np.ones((k // 32, m), ml_dtypes.float8_e8m0fnu)}
    return Filled(tensors, {"M": m, "K": k, "KS": k // 32}, {"Y": f64(y), "S": s.T})


def _selected(rng: np.random.Generator, x: Axes) -> Filled:
    r, n, top = x["R"], x["N"], x["TOP"]
    keys = rng.integers(1, 2**32, (r, n), dtype=np.uint64).astype(np.uint32)
    keys[:, ::3] = (keys[:, ::3] & 255) | (keys[:, :1] & 0xFFFFFF00)
    kth = np.sort(keys, 1)[:, n - top].copy()
    tensors = {"KEYS": keys, "KTH": np.full(r, 7, np.uint32), "OUT": np.full((r, n), 7, np.uint32)}
    return Filled(tensors, {"R": r, "N": n, "TOP": top}, {"KTH": kth, "OUT": np.where(keys >= kth[:, None], keys, np.uint32(0))})


def _recurred(rng: np.random.Generator, x: Axes) -> Filled:
    b = x["BH"]
    q, k, v, g, u, st = *(normal(rng, b, 64, dtype=F32) for _ in range(4)), normal(rng, 64, dtype=F32), normal(rng, b, 64, 64, dtype=F32)
    g = -np.abs(g)
    kv = f64(v)[:, :, None] * f64(k)[:, None, :]
    o = ((f64(st) + kv * f64(u)) * f64(q)[:, None]).sum(2)
    tensors = {"Q": q, "K": k, "V": v, "G": g, "U": u, "ST": st, "O": empty(b, 64, dtype=F32)}
    return Filled(tensors, {"BH": b}, {"O": o, "ST": f64(st) * np.exp(f64(g))[:, None] + kv})


def _moved_up(rng: np.random.Generator, x: Axes) -> Filled:
    b, slots, d = x["B"], x["SLOTS"], x["D"]
    a, st, slot = normal(rng, b, d), normal(rng, slots, 3, d), rng.permutation(slots)[:b].astype(np.int32)
    w, bias = normal(rng, 4, d, dtype=F32), normal(rng, d, dtype=F32)
    taps = np.concatenate([f64(st)[slot], f64(a)[:, None]], 1)
    z = (taps * f64(w)).sum(1) + f64(bias)
    after = f64(st).copy()
    after[slot] = taps[:, 1:]
    tensors = {"X": a, "STATE": st, "SLOT": slot, "WT": w, "BIAS": bias, "Y": empty(b, d)}
    return Filled(tensors, {"B": b, "SLOTS": slots, "D": d}, {"Y": z / (1 + np.exp(-z)), "STATE": after})


GUESTS_ROWS = (
    corpus("embedding_bwd_reduce", ({"T": 30, "D": 260, "V": 5}, {"T": 9, "D": 20, "V": 3}), _scattered, params={"STAGES": 2}, ctas=2),
    corpus("layernorm_bwd_ring", ({"R": 9}, {"R": 3}), _norm_back, params={"STAGES": 2, "D": 512}, ctas=2),
    corpus("moe_align_count", ({"N": 1100, "E": 40}, {"N": 90, "E": 256}), _counted),
    corpus("moe_align_fill", ({"N": 300, "E": 5}, {"N": 60, "E": 9}), _aligned),
    corpus("chained_scan", ({"R": 2, "N": 2500}, {"R": 3, "N": 1030}), _chained, ctas=2),
    corpus("adam_fp8_states", ({"NB": 40}, {"NB": 9}), _stepped, ctas=2, tolerance=6e-2),
    corpus("reshape_and_cache_fp8", ({"T": 9, "SLOTS": 12}, {"T": 3, "SLOTS": 5}), _cached, ctas=2, tolerance=4e-2),
    corpus("add_rmsnorm_quant", ({"R": 7}, {"R": 3}), _normed, params={"D": 1024, "WARPS": 4}, ctas=2, tolerance=4e-2),
    corpus("swiglu_bwd_ring", ({"M": 100, "F": 192}, {"M": 20, "F": 64, "ctas": 1}), _unsilu, params={"STAGES": 2}, ctas=2),
    corpus("mhc_sinkhorn", ({"T": 7}, {"T": 3}), _balanced, params={"ROUNDS": 3}),
    corpus("lse_merge_parts", ({"S": 4, "B": 2, "H": 20, "n": (4, 2)}, {"S": 2, "B": 3, "H": 5, "n": (1, 2, 1)}), _merged),
    corpus("mxfp8_quant_ring", ({"M": 150, "K": 160}, {"M": 40, "K": 96, "ctas": 1}), _microscaled, params={"STAGES": 2}, ctas=2, tolerance=1e-6),
    corpus("radix_select_keys", ({"R": 3, "N": 600, "TOP": 50}, {"R": 2, "N": 90, "TOP": 90}), _selected, params={"WARPS": 2}, ctas=2),
    corpus("gla_decode_step", ({"BH": 3}, {"BH": 1}), _recurred),
    corpus("conv1d_update_mamba", ({"B": 3, "SLOTS": 5, "D": 1100}, {"B": 2, "SLOTS": 2, "D": 100}), _moved_up),
)

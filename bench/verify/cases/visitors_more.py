"""Attention, recurrences, rows and choices of the sixth stranger: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, E4M3, F16, F32, LOG2E, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def _slices(rng: np.random.Generator, x: Axes) -> Filled:
    lens, hk, cap, splits = np.array(x["lens"], np.int32), x["HK"], x["CAP"], x["SPLITS"]
    b, scale = len(lens), LOG2E * 128**-0.5
    q, k, v = normal(rng, b, 16 * hk, 128), normal(rng, b, hk, cap, 128), normal(rng, b, hk, cap, 128)
    o, top, den = np.zeros((splits, b, 16 * hk, 128)), np.full((splits, b, 16 * hk), -1e30), np.zeros((splits, b, 16 * hk))
    for i, n in enumerate(map(int, lens)):
        blocks = -(-n // 64)
        each = -(-blocks // splits)
        for s in range(splits):
            first, last = min(s * each, blocks) * 64, min(min(s * each, blocks) + each, blocks) * 64
            for h in range(hk if first < last else 0):
                rows = slice(16 * h, 16 * h + 16)
                z = f64(q[i, rows]) @ f64(k[i, h, first : min(last, n)]).T * scale
                top[s, i, rows] = z.max(1)
                p = 2.0 ** (z - z.max(1, keepdims=True))
                den[s, i, rows], o[s, i, rows] = p.sum(1), p @ f64(v[i, h, first : min(last, n)])
    tensors = {"Q": q, "KC": k, "VC": v, "LEN": lens, "OP": empty(*o.shape, dtype=F32), "MP": empty(*top.shape, dtype=F32), "LP": empty(*den.shape, dtype=F32)}
    return Filled(tensors, {"B": b, "HQ": 16 * hk, "HK": hk, "CAP": cap, "SPLITS": splits, "scale": np.float32(scale)}, {"OP": o, "MP": top, "LP": den})


def _chunked(rng: np.random.Generator, x: Axes) -> Filled:
    fresh, past, hq, hk, most, scale = x["fresh"], np.array(x["past"], np.int32), x["HQ"], x["HK"], x["MAXP"], LOG2E * 128**-0.5
    b, start, pages = len(past), offsets(fresh), len(past) * most
    tok, table = int(start[-1]), rng.permutation(pages).astype(np.int32)
    q, k, v = normal(rng, tok, hq, 128), normal(rng, pages, hk, 64, 128), normal(rng, pages, hk, 64, 128)
    want = np.zeros((tok, hq, 128))
    for i in range(b):
        mine, reach = table[i * most : (i + 1) * most], int(past[i]) + fresh[i]
        for h in range(hq):
            keys, values = (f64(c[mine, h // (hq // hk)]).reshape(-1, 128)[:reach] for c in (k, v))
            for r in range(fresh[i]):
                z = keys[: past[i] + r + 1] @ f64(q[start[i] + r, h]) * scale
                want[start[i] + r, h] = softmax(z / LOG2E) @ values[: past[i] + r + 1]
    tensors = {"Q": q, "KP": k.reshape(-1, 64, 128), "VP": v.reshape(-1, 64, 128), "START": start, "SEEN": past, "TABLE": table, "O": empty(tok, hq, 128)}
    scalars = {"TOK": tok, "HQ": hq, "HK": hk, "FRAMES": pages * hk, "SEQS": b, "CHUNK": max(fresh), "MAXP": most, "scale": np.float32(scale)}
    return Filled(tensors, scalars, {"O": want})


def _dual(rng: np.random.Generator, x: Axes) -> Filled:
    b, h, g, t = x["BATCH"], x["H"], x["G"], x["T"]
    u, bm, cm = normal(rng, b * t, h, 64), normal(rng, b * t, g, 128), normal(rng, b * t, g, 128)
    dt, d = (rng.random((b * h, t)) * 0.5 + 0.1).astype(F32), normal(rng, h, dtype=F32)
    cum = np.cumsum(-(rng.random((b * h, t // 64, 64)) * 0.1), -1).reshape(b * h, t).astype(F32)
    y, final = np.zeros((b * t, h, 64)), np.zeros((b * h, 64, 128))
    for i in range(b):
        for j in range(h):
            s = np.zeros((64, 128))
            for c in range(0, t, 64):
                rows, a = slice(i * t + c, i * t + c + 64), f64(cum[i * h + j, c : c + 64])
                xs, bs, cs, w = f64(u[rows, j]), f64(bm[rows, j // (h // g)]), f64(cm[rows, j // (h // g)]), f64(dt[i * h + j, c : c + 64])
                z = np.tril(cs @ bs.T * 2.0 ** np.minimum(a[:, None] - a, 0)) * w
                y[rows, j] = z @ xs + 2.0 ** a[:, None] * (cs @ s.T) + f64(d[j]) * xs
                s = 2.0 ** a[-1] * s + (xs * (w * 2.0 ** (a[-1] - a))[:, None]).T @ bs
            final[i * h + j] = s
    tensors = {"X": u, "BM": bm, "CM": cm, "CUM": cum, "DT": dt, "D": d, "Y": empty(b * t, h, 64), "FINAL": empty(b * h, 64, 128, dtype=F32)}
    return Filled(tensors, {"ROWS": b * t, "H": h, "G": g, "HB": h * b, "T": t, "BATCH": b}, {"Y": y, "FINAL": final})


def _returned(rng: np.random.Generator, x: Axes) -> Filled:
    n, d, top = x["TOKENS"], x["D"], 4
    slots = n * top + 3
    e, shared, gate = normal(rng, slots, d), normal(rng, n, d), (rng.random(n * top) + 0.1).astype(F32)
    where = rng.permutation(slots)[: n * top].astype(np.int32)
    where[1::5] = -1
    where[: top * (n > 2)] = -1
    w = f64(gate).reshape(n, top) * (where.reshape(n, top) >= 0)
    mix = (w[..., None] * f64(e)[where.reshape(n, top)]).sum(1) / np.where(w.sum(1) > 0, w.sum(1), 1)[:, None]
    tensors = {"E": e, "WHERE": where, "GATE": gate, "SHARED": shared, "Y": empty(n, d)}
    return Filled(tensors, {"TOKENS": n, "SLOTS": slots, "PAIRS": n * top, "D": d}, {"Y": f64(shared) + mix})


def _norm_back(rng: np.random.Generator, x: Axes) -> Filled:
    n, d = x["ROWS"], 1024
    a, g, w = normal(rng, n, d), normal(rng, n, d), normal(rng, d)
    rs = (1 / np.sqrt((f64(a) ** 2).mean(1) + 1e-5)).astype(F32)
    xh, gw = f64(a) * f64(rs)[:, None], f64(g) * f64(w)
    dx = (gw - xh * (gw * xh).mean(1, keepdims=True)) * f64(rs)[:, None]
    return Filled({"X": a, "G": g, "W": w, "RS": rs, "DX": empty(n, d), "DW": np.zeros(d, F32)}, {"ROWS": n}, {"DX": dx, "DW": (f64(g) * xh).sum(0)})


def _nucleus(rng: np.random.Generator, x: Axes) -> Filled:
    rows, v = x["ROWS"], 2048
    a, temp, p = normal(rng, rows, v), (rng.random(rows) * 0.5 + 0.4).astype(F32), (rng.random(rows) * 0.4 + 0.5).astype(F32)
    noise = (-np.log(rng.random((rows, v)) + 1e-6) + 1e-3).astype(F32)
    e = np.exp((f64(a) - f64(a).max(1, keepdims=True)) / f64(temp)[:, None])
    best = -np.sort(-e, 1)
    cut = np.argmax(np.cumsum(best, 1) >= (e.sum(1) * f64(p))[:, None], 1)
    kept = e >= best[np.arange(rows), cut][:, None] - 1e-12
    token = np.argmax(np.where(kept, e / f64(noise), 0), 1)
    tensors = {"LOGITS": a, "TEMP": temp, "TOPP": p, "NOISE": noise, "TOKEN": empty(rows, dtype=np.int32), "KEPT": empty(rows, dtype=np.int32)}
    return Filled(tensors, {"ROWS": rows}, {"TOKEN": token.astype(np.int32), "KEPT": kept.sum(1).astype(np.int32)})


def _strokes(rng: np.random.Generator, x: Axes) -> Filled:
    ranks, n = x["RANKS"], x["N"]
    a = normal(rng, ranks, n)
    want = f64(a).sum(0)
    tensors = {"X": a, "RED": empty(n, dtype=F32), "Y": empty(ranks, n), "DONE": np.zeros(n // 2048, np.int32)}
    return Filled(tensors, {"RANKS": ranks, "N": n, "MARKS": n // 2048}, {"RED": want, "Y": np.tile(want, (ranks, 1))})


def _padded(rng: np.random.Generator, x: Axes) -> Filled:
    b, h, s, n, scale = x["B"], x["H"], x["S"], x["L"], LOG2E / 8
    q, k, v = normal(rng, b, h, s, 64, dtype=F16), normal(rng, b, h, n, 64, dtype=F16), normal(rng, b, h, n, 64, dtype=F16)
    keep = (rng.random((b, n)) < 0.7).astype(np.int32)
    keep[:, 0] = 1
    z = f64(q) @ f64(k).swapaxes(-1, -2) * scale / LOG2E
    want = softmax(np.where(keep[:, None, None] != 0, z, -np.inf)) @ f64(v)
    return Filled({"Q": q, "K": k, "V": v, "KEEP": keep, "O": empty(b, h, s, 64, dtype=F16)}, {"B": b, "H": h, "S": s, "L": n, "scale": np.float32(scale)}, {"O": want})


def _delta(rng: np.random.Generator, x: Axes) -> Filled:
    slot, hv, hk = np.array(x["slot"], np.int32), x["HV"], x["HK"]
    b, slots = len(slot), max(x["slot"]) + 2
    q, k, v = normal(rng, b * hk, 128), (normal(rng, b * hk, 128, dtype=F32) / 11).astype(BF16), normal(rng, b * hv, 128)
    a, beta, pool = (rng.random(b * hv) * 0.5 + 0.5).astype(F32), rng.random(b * hv).astype(F32), normal(rng, slots * hv, 128, 128, dtype=F32)
    after, o = f64(pool), np.zeros((b * hv, 128))
    for i in range(b):
        for h in range(hv if slot[i] >= 0 else 0):
            head, src = i * hv + h, i * hk + h // (hv // hk)
            s = after[slot[i] * hv + h] * f64(a[head])
            s += np.outer((f64(v[head]) - s @ f64(k[src])) * f64(beta[head]), f64(k[src]))
            after[slot[i] * hv + h], o[head] = s, s @ f64(q[src])
    scalars = {"BATCH": b, "HV": hv, "HK": hk, "QR": b * hk, "VR": b * hv, "SR": slots * hv, "SLOTS": slots}
    return Filled({"Q": q, "K": k, "V": v, "A": a, "BETA": beta, "SLOT": slot, "POOL": pool, "O": empty(b * hv, 128)}, scalars, {"POOL": after, "O": o})


def _indexed(rng: np.random.Generator, x: Axes) -> Filled:
    tok, n = x["TOK"], x["L"]
    q, kv, ks, w = normal(rng, tok, 64, 128, dtype=E4M3), normal(rng, n, 128, dtype=E4M3), (rng.random(n) + 0.5).astype(F32), normal(rng, tok, 64, dtype=F32)
    lo = rng.integers(0, n, tok).astype(np.int32)
    hi = np.minimum(lo + rng.integers(1, n, tok), n).astype(np.int32)
    want = np.full((tok, n), -np.inf)
    for i in range(tok):
        score = (np.maximum(f64(q[i]) @ f64(kv).T, 0) * f64(w[i])[:, None]).sum(0) * f64(ks)
        at = np.arange(n)
        want[i] = np.where((at >= lo[i]) & (at < hi[i]), score, -np.inf)
    return Filled({"Q": q, "KV": kv, "KS": ks, "WT": w, "FROM": lo, "UPTO": hi, "OUT": np.full((tok, n), -np.inf, F32)}, {"TOK": tok, "L": n}, {"OUT": want})


def _taps(rng: np.random.Generator, x: Axes) -> Filled:
    t, ci, co = x["T"], x["CI"], x["CO"]
    a, w = normal(rng, t, ci, dtype=F16), normal(rng, 3, co, ci, dtype=F16)
    rows = np.pad(f64(a), ((1, 1), (0, 0)))
    return Filled({"X": a, "W": w, "Y": empty(t, co, dtype=F16)}, dict(x), {"Y": sum(rows[i : i + t] @ f64(w[i]).T for i in range(3))})


VISITORS_MORE = (
    corpus("decode_part", ({"lens": (330, 64), "HK": 2, "CAP": 340, "SPLITS": 2}, {"lens": (1, 130), "HK": 1, "CAP": 130, "SPLITS": 3}), _slices, tolerance=1e-2),
    corpus("prefill_paged_loaders", ({"fresh": (150, 128), "past": (200, 70), "HQ": 2, "HK": 1, "MAXP": 6}, {"fresh": (3, 60, 1), "past": (0, 30, 64), "HQ": 2, "HK": 2, "MAXP": 2}), _chunked, ctas=2, tolerance=1e-2),
    corpus("ssd_chunk_out", ({"BATCH": 1, "H": 2, "G": 1, "T": 256}, {"BATCH": 2, "H": 1, "G": 1, "T": 64}), _dual, params={"STAGES": 2}, tolerance=1e-2),
    corpus("moe_unpermute", ({"TOKENS": 5, "D": 2048}, {"TOKENS": 2, "D": 1024}), _returned, ctas=2),
    corpus("rmsnorm_bwd_cluster", ({"ROWS": 19}, {"ROWS": 3}), _norm_back, params={"D": 1024, "EACH": 4}, tolerance=1e-2),
    corpus("nucleus_pick", ({"ROWS": 3}, {"ROWS": 1}), _nucleus, params={"V": 2048}, ctas=2),
    corpus("reduce_then_gather", ({"RANKS": 3, "N": 4096}, {"RANKS": 1, "N": 2048}), _strokes, ctas=2),
    corpus("prefix_attention_sm80", ({"B": 1, "H": 2, "S": 100, "L": 200}, {"B": 2, "H": 1, "S": 10, "L": 40}), _padded, tolerance=1e-2),
    corpus("conv_three_taps", ({"T": 150, "CI": 64, "CO": 72}, {"T": 20, "CI": 32, "CO": 136}), _taps, tolerance=1e-2),
    corpus("delta_rule_step", ({"slot": (2, -1, 0), "HV": 4, "HK": 2}, {"slot": (1,), "HV": 1, "HK": 1}), _delta, tolerance=1e-2),
    corpus("indexer_logits", ({"TOK": 5, "L": 500}, {"TOK": 2, "L": 120}), _indexed, params={"STAGES": 2}, ctas=2, tolerance=1e-2),
)

"""Products and attention of a seventh stranger who had read the language page only: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import E4M3, F32, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def _biased(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, bias = normal(rng, m, k), normal(rng, n, k), normal(rng, n, dtype=F32)
    tensors = {"A": a, "B": b, "BIAS": bias, "C": empty(m, n), "NEXT": np.zeros(1, np.int32)}
    return Filled(tensors, {"M": m, "N": n, "K": k}, {"C": f64(a) @ f64(b).T + f64(bias)})


def _grouped(rng: np.random.Generator, x: Axes) -> Filled:
    lens, n, k = x["lens"], x["N"], x["K"]
    rows, e, at = sum(lens), len(lens), offsets(lens)
    a, w = normal(rng, rows, k, dtype=E4M3), normal(rng, e, n, k, dtype=E4M3)
    sx, sw = (rng.random(rows) + 0.5).astype(F32), (rng.random((e, n)) + 0.5).astype(F32)
    want = np.concatenate([f64(a)[at[g] : at[g + 1]] @ f64(w)[g].T * f64(sw)[g] for g in range(e)]) * f64(sx)[:, None]
    return Filled({"X": a, "W": w, "SX": sx, "SW": sw, "OFFS": at, "Y": empty(rows, n)}, {"ROWS": rows, "E": e, "N": n, "K": k}, {"Y": want})


def _gelu(z: Any) -> Any:
    return 0.5 * z * (1 + np.tanh(0.79788456 * (z + 0.044715 * z**3)))


def _dropped(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, bias, keep = normal(rng, m, k), normal(rng, n, k), normal(rng, n, dtype=F32), (rng.random((m, n)) < 0.7).astype(np.uint8)
    z = f64(a) @ f64(b).T + f64(bias)
    tensors = {"A": a, "B": b, "BIAS": bias, "KEEP": keep, "PRE": empty(m, n), "Y": empty(m, n)}
    return Filled(tensors, {"M": m, "N": n, "K": k, "scale": 1.25}, {"PRE": z, "Y": _gelu(z) * keep * 1.25})


def _convolved(rng: np.random.Generator, x: Axes) -> Filled:
    b, h, w, c, o = x["NB"], x["H"], x["W"], x["C"], x["KO"]
    i, f, bias = normal(rng, b, h, w, c), normal(rng, 9, o, c), normal(rng, o, dtype=F32)
    wide = np.pad(f64(i), ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = sum(wide[:, r : r + h, s : s + w] @ f64(f)[3 * r + s].T for r in range(3) for s in range(3)) + f64(bias)
    return Filled({"X": i, "F": f, "BIAS": bias, "Y": empty(b, h, w, o)}, {"NB": b, "H": h, "W": w, "C": c, "KO": o}, {"Y": np.maximum(y, 0)})


def _widened(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    w, a, s = rng.integers(-127, 128, (n, k)).astype(np.int8), normal(rng, m, k), (rng.random(n) * 0.01 + 0.01).astype(F32)
    return Filled({"W": w, "X": a, "SW": s, "YT": empty(n, m)}, {"M": m, "N": n, "K": k}, {"YT": f64(w) @ f64(a).T * f64(s)[:, None]})


def _smooth(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = rng.integers(-127, 128, (m, k)).astype(np.int8), rng.integers(-127, 128, (n, k)).astype(np.int8)
    sa, sb, bias = (rng.random(m) * 0.01).astype(F32), (rng.random(n) * 0.01).astype(F32), normal(rng, n, dtype=F32)
    want = f64(a) @ f64(b).T * f64(sa)[:, None] * f64(sb) + f64(bias)
    return Filled({"A": a, "B": b, "SA": sa, "SB": sb, "BIAS": bias, "C": empty(m, n)}, {"M": m, "N": n, "K": k}, {"C": want})


def _by_number(rng: np.random.Generator, x: Axes) -> Filled:
    t, k, e, n, owner = x["T"], x["K"], x["E"], x["N"], np.array(x["owners"], np.int32)
    cap = 128 * len(owner)
    a, w, ids, gate = normal(rng, t, k), normal(rng, e, n, k), rng.integers(0, t + 3, cap).astype(np.int32), rng.random(cap).astype(F32)
    rows = np.concatenate([f64(a), np.zeros((3, k))])[ids] * f64(gate)[:, None]
    y = np.concatenate([rows[128 * b : 128 * b + 128] @ f64(w)[g].T if g >= 0 else np.ones((128, n)) for b, g in enumerate(owner)])
    tensors = {"X": a, "W": w, "SORTED": ids, "OWNER": owner, "GATE": gate, "Y": np.ones((cap, n), a.dtype)}
    return Filled(tensors, {"T": t, "K": k, "E": e, "N": n, "CAP": cap, "NB": len(owner)}, {"Y": y})


def _in_turn(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, tiles = normal(rng, m, k), normal(rng, n, k), -(-m // 64) * -(-n // 128)
    tensors = {"A": a, "B": b, "C": empty(m, n, dtype=F32), "TURN": np.zeros(tiles, np.int32)}
    return Filled(tensors, {"M": m, "N": n, "K": k, "TILES": tiles, "SPLITS": x["SPLITS"]}, {"C": f64(a) @ f64(b).T})


def _routed(rng: np.random.Generator, x: Axes) -> Filled:
    t, h = x["T"], x["H"]
    a, w, bias = normal(rng, t, h), normal(rng, 64, h), normal(rng, 64, dtype=F32)
    z = f64(a) @ f64(w).T + f64(bias)
    best = np.argsort(-z, 1, kind="stable")[:, :4]
    tensors = {"X": a, "WG": w, "BIAS": bias, "WEIGHT": empty(t, 4, dtype=F32), "EXPERT": np.full((t, 4), -7, np.int32)}
    return Filled(tensors, {"T": t, "H": h}, {"WEIGHT": softmax(np.take_along_axis(z, best, 1)), "EXPERT": best.astype(np.int32)})


def _windowed(rng: np.random.Generator, x: Axes) -> Filled:
    hq, hk, win, qlens, klens = x["HQ"], x["HK"], x["WINDOW"], x["q"], x["k"]
    b, t, maxp = len(qlens), sum(qlens), max(-(-n // 64) for n in klens)
    pages = b * maxp + 1
    q, kc, vc = normal(rng, t, hq, 64), normal(rng, pages, 64, hk, 64), normal(rng, pages, 64, hk, 64)
    sink, table = normal(rng, hq, dtype=F32), rng.permutation(pages)[: b * maxp].astype(np.int32)
    cu, o = offsets(qlens), np.zeros((t, hq, 64))
    for i in range(b):
        k, v = (f64(c)[table[i * maxp : (i + 1) * maxp]].reshape(-1, hk, 64)[: klens[i]] for c in (kc, vc))
        for h in range(hq):
            s = f64(q)[cu[i] : cu[i + 1], h] @ k[:, h * hk // hq].T / 8
            pos, key = np.arange(qlens[i])[:, None] + klens[i] - qlens[i], np.arange(klens[i])
            s = np.where((key <= pos) & (key > pos - win), s, -np.inf)
            p = softmax(np.concatenate([s, np.full((qlens[i], 1), f64(sink)[h])], 1))[:, :-1]
            o[cu[i] : cu[i + 1], h] = p @ v[:, h * hk // hq]
    tensors = {"Q": q, "KC": kc, "VC": vc, "SINK": sink, "CUQ": cu, "KVLEN": np.array(klens, np.int32), "TABLE": table, "O": empty(t, hq, 64)}
    scalars = {"T": t, "HQ": hq, "HK": hk, "PAGES": pages, "B": b, "B1": b + 1, "MAXP": maxp, "BP": b * maxp, "QT": -(-max(qlens) // 128), "scale": 0.125}
    return Filled(tensors, scalars, {"O": o})


def _around(rng: np.random.Generator, x: Axes) -> Filled:
    h, s, n = x["H"], x["S"], x["L"]
    q, k, v, old, lse = normal(rng, h, s, 128), normal(rng, h, n, 128), normal(rng, h, n, 128), normal(rng, h, s, 128, dtype=F32), normal(rng, h, s, dtype=F32) + 2
    z = f64(q) @ f64(k).transpose(0, 2, 1) * 0.09
    all_, w = np.logaddexp(np.logaddexp.reduce(z, -1), f64(lse)), f64(lse)
    o = f64(old) * np.exp(w - all_)[..., None] + np.exp(z - all_[..., None]) @ f64(v)
    return Filled({"Q": q, "K": k, "V": v, "OA": old, "LSE": lse.astype(F32)}, {"H": h, "S": s, "L": n, "scale": 0.09}, {"OA": o, "LSE": all_})


def _tree(rng: np.random.Generator, x: Axes) -> Filled:
    b, nd, s, hq, hk = x["B"], x["ND"], x["S"], x["HQ"], x["HK"]
    q, kc, vc = normal(rng, b, hq, nd, 128), normal(rng, b, hk, s, 128), normal(rng, b, hk, s, 128)
    ctx = np.array(x["ctx"], np.int32)
    bits = np.tril(rng.random((b, nd, nd)) < 0.5) | np.eye(nd, dtype=bool)
    words = (bits * (1 << np.arange(nd, dtype=np.uint64))).sum(-1).astype(np.uint32)
    o = np.zeros((b, hq, nd, 128))
    for i in range(b):
        for h in range(hq):
            k, v = (f64(c)[i, h * hk // hq, : ctx[i] + nd] for c in (kc, vc))
            z = f64(q)[i, h] @ k.T * 0.09
            seen = np.concatenate([np.ones((nd, ctx[i]), bool), bits[i]], 1)
            o[i, h] = softmax(np.where(seen, z, -np.inf)) @ v
    tensors = {"Q": q, "KC": kc, "VC": vc, "TREE": words, "CTX": ctx, "O": empty(b, hq, nd, 128)}
    return Filled(tensors, {"B": b, "ND": nd, "S": s, "HQ": hq, "HK": hk, "scale": 0.09}, {"O": o})


def _crossed(rng: np.random.Generator, x: Axes) -> Filled:
    h, ql, kl = x["H"], x["q"], x["k"]
    cq, ck, tq, tk = offsets(ql), offsets(kl), sum(ql), sum(kl)
    q, k, v = normal(rng, tq, h, 64), normal(rng, tk, h, 64), normal(rng, tk, h, 64)
    o, lse = np.zeros((tq, h, 64)), np.full((h, tq), -np.inf)
    for i in range(len(ql)):
        a, c = slice(cq[i], cq[i + 1]), slice(ck[i], ck[i + 1])
        for j in range(h):
            if ql[i] and kl[i]:
                z = f64(q)[a, j] @ f64(k)[c, j].T / 8
                o[a, j], lse[j, a] = softmax(z) @ f64(v)[c, j], np.logaddexp.reduce(z, -1)
    tensors = {"Q": q, "K": k, "V": v, "CUQ": cq, "CUK": ck, "O": empty(tq, h, 64), "LSE": empty(h, tq, dtype=F32)}
    scalars = {"TQ": tq, "TK": tk, "H": h, "B": len(ql), "B1": len(ql) + 1, "QT": max(1, -(-max(ql) // 64)), "scale": 0.125}
    return Filled(tensors, scalars, {"O": o, "LSE": lse})


GUESTS = (
    corpus("gemm_counter_multicast", ({"M": 300, "N": 264, "K": 200}, {"M": 520, "N": 136, "K": 40}), _biased, params={"STAGES": 2}, ctas=4),
    corpus("fp8_grouped_rowwise", ({"lens": (130, 0, 40, 90), "N": 136, "K": 272}, {"lens": (5, 129), "N": 256, "K": 64}), _grouped, params={"STAGES": 2}, ctas=2, tolerance=1e-2),
    corpus("gemm_gelu_dropout", ({"M": 200, "N": 272, "K": 200}, {"M": 400, "N": 144, "K": 64}), _dropped, params={"STAGES": 2}, ctas=2, tolerance=1e-2),
    corpus("conv2d_nhwc_tcgen05", ({"NB": 2, "H": 2, "W": 136, "C": 72, "KO": 72}, {"NB": 1, "H": 3, "W": 20, "C": 16, "KO": 8}), _convolved, params={"STAGES": 2}, ctas=2),
    corpus("w8a16_swapped_wgmma", ({"M": 40, "N": 264, "K": 272}, {"M": 7, "N": 520, "K": 64}), _widened, params={"STAGES": 2}, ctas=2),
    corpus("int8_dequant_gemm", ({"M": 140, "N": 72, "K": 272}, {"M": 30, "N": 136, "K": 32}), _smooth),
    corpus("moe_gather_tcgen05", ({"T": 50, "K": 200, "E": 3, "N": 136, "owners": (0, 2, -1, 1, 2)}, {"T": 20, "K": 64, "E": 2, "N": 40, "owners": (1, 0, -1, 1)}), _by_number, params={"STAGES": 2}, ctas=2),
    corpus("serial_splitk_sm120", ({"M": 100, "N": 136, "K": 520, "SPLITS": 3}, {"M": 30, "N": 40, "K": 256, "SPLITS": 4}), _in_turn, params={"STAGES": 2}, ctas=2),
    corpus("router_topk_fused", ({"T": 100, "H": 520}, {"T": 30, "H": 64}), _routed, tolerance=1e-2),
    corpus("swa_sink_paged", ({"HQ": 2, "HK": 1, "WINDOW": 100, "q": (140, 20), "k": (300, 20)}, {"HQ": 2, "HK": 2, "WINDOW": 100, "q": (3, 0, 60), "k": (200, 5, 60)}), _windowed, params={"STAGES": 2, "WINDOW": 100}, ctas=2, tolerance=1e-2),
    corpus("ring_attention_step", ({"H": 2, "S": 200, "L": 300}, {"H": 5, "S": 60, "L": 40}), _around, params={"STAGES": 2}, ctas=2, tolerance=1e-2),
    corpus("tree_attention_masked", ({"B": 2, "ND": 20, "S": 220, "HQ": 2, "HK": 1, "ctx": (170, 64)}, {"B": 2, "ND": 5, "S": 40, "HQ": 2, "HK": 2, "ctx": (30, 0)}), _tree, tolerance=1e-2),
    corpus("cross_varlen_sm120", ({"H": 2, "q": (100, 30), "k": (150, 20)}, {"H": 2, "q": (20, 0, 70), "k": (60, 9, 64)}), _crossed, ctas=2, tolerance=1e-2),
)

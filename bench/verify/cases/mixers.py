"""What stands around attention in today's models: linear recurrences, convolutions, routing, adapters, norms, quantised and ragged products; arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, E4M3, F32, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def _round(x: Any) -> Any:
    return f64(np.asarray(x, np.float32).astype(BF16))


def _mamba(rng: np.random.Generator, x: Axes) -> Filled:
    b, h, nc, ds, p = x["B"], x["H"], x["NC"], 128, 64
    length = nc * 64
    c, bm = ((normal(rng, b, nc, 64, ds) * 0.3).astype(BF16) for _ in range(2))
    v, state, dt = normal(rng, b, h, length, p), normal(rng, b * nc, h, p, ds), rng.random((b, h, length), dtype=np.float32)
    decay = -np.cumsum(rng.random((b, h, nc, 64)) * 0.1, -1).reshape(b, h, length).astype(F32)
    out = np.zeros((b, h, length, p))
    for i, j, n in np.ndindex(b, h, nc):
        s = slice(n * 64, n * 64 + 64)
        a = f64(decay[i, j, s])
        score = np.tril((f64(c[i, n]) @ f64(bm[i, n]).T) * np.exp(np.minimum(a[:, None] - a[None], 0)) * dt[i, j, s])
        out[i, j, s] = score @ f64(v[i, j, s]) + np.exp(a)[:, None] * (f64(c[i, n]) @ f64(state[i * nc + n, j]).T)
    tensors = {"C": c, "BM": bm, "X": v, "STATE": state, "DACS": decay, "DT": dt, "Y": empty(b, h, length, p)}
    return Filled(tensors, {"B": b, "H": h, "NC": nc, "L": length, "BNC": b * nc}, {"Y": out})


def _delta(rng: np.random.Generator, x: Axes) -> Filled:
    b, h, nt, dv = x["B"], x["H"], x["NT"], 64
    length = nt * 64
    k, w = ((rng.standard_normal((b, h, length, 128)) * 0.05).astype(BF16) for _ in range(2))
    u, g = normal(rng, b, h, length, dv), -np.cumsum(rng.random((b, h, nt, 64)) * 0.05, -1).reshape(b, h, length).astype(F32)
    states, values = np.zeros((b * h * nt, 1, dv, 128)), np.zeros((b, h, length, dv))
    for i, j in np.ndindex(b, h):
        state = np.zeros((dv, 128))
        for n in range(nt):
            s = slice(n * 64, n * 64 + 64)
            states[(i * h + j) * nt + n, 0] = state
            d, gs = f64(u[i, j, s]) - f64(w[i, j, s]) @ _round(state).T, f64(g[i, j, s])
            values[i, j, s] = d
            state = state * np.exp(gs[-1]) + _round(d * np.exp(gs[-1] - gs)[:, None]).T @ f64(k[i, j, s])
    tensors = {"K": k, "W": w, "U": u, "G": g.ravel(), "HS": empty(b * h * nt, 1, dv, 128), "VN": empty(b, h, length, dv)}
    scalars = {"B": b, "H": h, "L": length, "NT": nt, "BHN": b * h * nt, "BHL": b * h * length}
    return Filled(tensors, scalars, {"HS": states, "VN": values})


def _conv(rng: np.random.Generator, x: Axes) -> Filled:
    cu, c = offsets(x["lengths"]), 1024
    t = max(1, int(cu[-1]))
    v, w, bias, out = normal(rng, t, c), rng.standard_normal((4, c)).astype(F32), rng.standard_normal(c).astype(F32), np.zeros((t, c))
    for a, b in pairwise(cu):
        z = np.concatenate([np.zeros((3, c)), f64(v[a:b])])
        y = sum(z[i : i + b - a] * w[i] for i in range(4)) + bias
        out[a:b] = y / (1 + np.exp(-y))
    return Filled({"X": v, "W": w, "BIAS": bias, "CU": cu, "Y": empty(t, c)}, {"T": t, "NS1": len(cu)}, {"Y": out})


def _routing(rng: np.random.Generator, x: Axes) -> Filled:
    t, e, k = x["T"], 128, 8
    logits, bias = normal(rng, t, e), (rng.standard_normal(e) * 0.3).astype(F32)
    score = 1 / (1 + np.exp(-f64(logits)))
    chosen = np.argsort(-(score.astype(F32) + bias), 1, kind="stable")[:, :k]
    weight = np.take_along_axis(score, chosen, 1)
    tensors = {"LOGITS": logits, "BIAS": bias, "W": empty(t, k, dtype=F32), "IDX": empty(t, k, dtype=np.int32)}
    return Filled(tensors, {"T": t, "scale": 2.5}, {"W": weight / weight.sum(1, keepdims=True) * 2.5, "IDX": chosen.astype(np.int32)})


def _align(rng: np.random.Generator, x: Axes) -> Filled:
    p, e = x["P"], 64
    expert = rng.integers(0, e, p).astype(np.int32)
    count = np.bincount(expert, minlength=e)
    tensors = {"EXPERT": expert, "COUNT": empty(e, dtype=np.int32), "OFFS": empty(e + 1, dtype=np.int32)}
    return Filled(tensors, {"P": p, "E1": e + 1}, {"COUNT": count.astype(np.int32), "OFFS": offsets(tuple(-(-count // 64) * 64))})


def _lora(rng: np.random.Generator, x: Axes) -> Filled:
    t, n, r, d = x["T"], 3, x["R"], 256
    v, a, index = normal(rng, t, d), normal(rng, n, r, d), rng.integers(-1, n, t).astype(np.int32)
    index[1] = n  # no adapter either
    out = np.stack([f64(a[i]) @ f64(row) * 0.5 if 0 <= i < n else np.zeros(r) for i, row in zip(index, v, strict=True)])
    return Filled({"X": v, "A": a, "INDEX": index, "Y": empty(t, r, dtype=F32)}, {"T": t, "NL": n, "R": r, "scale": 0.5}, {"Y": out})


def _heads(rng: np.random.Generator, x: Axes) -> Filled:
    t, hq, hk, d, most = x["T"], x["HQ"], x["HK"], 128, 50
    heads, h = hq + 2 * hk, 64
    qkv, g, pos, angle = normal(rng, t, heads, d), normal(rng, 2, d), rng.integers(0, most, t).astype(np.int32), rng.random((most, h)) * 6
    n = f64(qkv) / np.sqrt((f64(qkv) ** 2).mean(-1, keepdims=True) + 1e-5)

    def turned(z: Any) -> Any:
        a, b, c, s = z[..., :h], z[..., h:], np.cos(angle[pos])[:, None], np.sin(angle[pos])[:, None]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    tensors = {"QKV": qkv, "G": g, "COS": np.cos(angle).astype(F32), "SIN": np.sin(angle).astype(F32), "POS": pos, "QO": empty(t, hq, d), "KO": empty(t, hk, d)}
    scalars = {"T": t, "HEADS": heads, "HQ": hq, "HK": hk, "MAXP": most, "eps": 1e-5}
    return Filled(tensors, scalars, {"QO": turned(n[:, :hq] * f64(g[0])), "KO": turned(n[:, hq : hq + hk] * f64(g[1]))})


def _rows(rng: np.random.Generator, x: Axes) -> Filled:
    v = (rng.standard_normal((x["R"], 2048)) * 3).astype(F32)
    return Filled({"X": v, "Y": empty(x["R"], 2048)}, dict(x), {"Y": softmax(f64(v))})


def _scaled(kind: str) -> Any:
    """Fill for C = (A B^T) sa sb with e4m3 or 8-bit integer operands."""

    def fill(rng: np.random.Generator, x: Axes) -> Filled:
        m, n, k = x["M"], x["N"], x["K"]
        a, b = (rng.integers(-100, 100, (r, k)).astype(np.int8) if kind == "i8" else normal(rng, r, k, dtype=F32).astype(E4M3) for r in (m, n))
        sa, sb = rng.random(m, dtype=np.float32), rng.random(n, dtype=np.float32)
        return Filled({"A": a, "B": b, "SA": sa, "SB": sb, "C": empty(m, n)}, {"M": m, "N": n, "K": k}, {"C": (f64(a) @ f64(b).T) * sa[:, None] * sb})

    return fill


def _plain(rng: np.random.Generator, x: Axes) -> Filled:
    a, b = normal(rng, x["M"], x["K"]), normal(rng, x["N"], x["K"])
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"])}, dict(M=x["M"], N=x["N"], K=x["K"]), {"C": f64(a) @ f64(b).T})


def _experts(rng: np.random.Generator, x: Axes) -> Filled:
    at, n, k = offsets(x["lens"]), 128, 256
    t = max(64, int(at[-1]))
    dy, v = normal(rng, t, n), normal(rng, t, k)
    dw = np.stack([f64(dy[a:b]).T @ f64(v[a:b]) for a, b in pairwise(at)])
    return Filled({"DY": dy, "X": v, "DW": empty(len(dw), n, k, dtype=F32), "OFFS": at}, {"T": t, "N": n, "K": k, "E": len(dw), "E1": len(at)}, {"DW": dw})


def _widened(rng: np.random.Generator, x: Axes) -> Filled:
    a, b, s = normal(rng, x["M"], x["K"]), rng.integers(-100, 100, (x["N"], x["K"])).astype(np.int8), rng.random(x["N"], dtype=np.float32)
    return Filled({"A": a, "B": b, "S": s, "C": empty(x["M"], x["N"])}, dict(M=x["M"], N=x["N"], K=x["K"]), {"C": f64(a) @ f64(b).T * s})


MIXERS = (
    corpus("mamba_chunk_scan", ({"B": 1, "H": 2, "NC": 3}, {"B": 2, "H": 1, "NC": 1, "ctas": 1}), _mamba, ctas=2, tolerance=1e-2),
    corpus("gated_delta_state", ({"B": 1, "H": 1, "NT": 5}, {"B": 2, "H": 1, "NT": 1}), _delta, tolerance=1e-2),
    corpus("causal_conv1d", ({"lengths": (5, 40, 0, 17)}, {"lengths": (1, 2), "ctas": 1}), _conv, params={"C": 1024, "BC": 512}, ctas=2, tolerance=1e-2),
    corpus("noaux_routing", ({"T": 150}, {"T": 20, "ctas": 1}), _routing, ctas=2),
    corpus("moe_align", ({"P": 2000}, {"P": 10}), _align),
    corpus("lora_shrink", ({"T": 7, "R": 6}, {"T": 3, "R": 4, "ctas": 1}), _lora, params={"D": 256}, ctas=2),
    corpus("qk_norm_rope", ({"T": 9, "HQ": 6, "HK": 2}, {"T": 5, "HQ": 4, "HK": 2, "ctas": 1}), _heads, ctas=4),
    corpus("cluster_softmax", ({"R": 5}, {"R": 2}), _rows, params={"V": 2048}, ctas=8),
    corpus("gemm_w8a8_ada", ({"M": 100, "N": 136, "K": 208}, {"M": 30, "N": 24, "K": 64}), _scaled("i8")),
    corpus("gemm_sm120", ({"M": 150, "N": 136, "K": 400}, {"M": 300, "N": 64, "K": 48, "ctas": 1}), _scaled("e4m3"), ctas=2),
    corpus("tcgen05_two_accumulators", ({"M": 150, "N": 136, "K": 200}, {"M": 300, "N": 264, "K": 48, "ctas": 1}), _plain, ctas=2),
    corpus("gemm_k_grouped", ({"lens": (128, 0, 320)}, {"lens": (64, 64), "ctas": 1}), _experts, ctas=2),
    corpus("mixed_input_three_roles", ({"M": 100, "N": 136, "K": 208}, {"M": 260, "N": 24, "K": 48, "ctas": 1}), _widened, ctas=2),
)  # fmt: skip

"""More kernels from the language page alone, of a third stranger: arguments and oracles. What was false about their first verdicts is in CHANGELOG.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, E4M3, F32, LOG2E, Array, Filled, corpus, empty, f64, normal, offsets

Axes = Mapping[str, Any]


def _backward(rng: np.random.Generator, x: Axes) -> Filled:
    bh, s, scale = x["BH"], x["S"], 0.125
    q, k, v, do = (normal(rng, bh, s, 64) for _ in range(4))
    z = np.where(np.tril(np.ones((s, s))) > 0, f64(q) @ f64(k).transpose(0, 2, 1) * scale, -np.inf)
    top = z.max(2, keepdims=True)
    p = np.exp(z - top)
    total = p.sum(2, keepdims=True)
    p /= total
    delta = (p @ f64(v) * f64(do)).sum(2)
    ds = p * (f64(do) @ f64(v).transpose(0, 2, 1) - delta[:, :, None])
    lse = ((top + np.log(total))[:, :, 0] * LOG2E).astype(F32)
    tensors = {"Q": q, "K": k, "V": v, "dO": do, "lse": lse, "delta": delta.astype(F32), "dK": empty(bh, s, 64), "dV": empty(bh, s, 64)}
    scalars = {"BH": bh, "S": s, "scale": np.float32(scale), "scale_log2": np.float32(scale * LOG2E)}
    return Filled(tensors, scalars, {"dK": ds.transpose(0, 2, 1) @ f64(q) * scale, "dV": p.transpose(0, 2, 1) @ f64(do)})


def _reject(rng: np.random.Generator, x: Axes) -> Filled:
    lens, v, most = x["lens"], x["V"], x["K"]
    cu, b = offsets(lens), len(lens)
    tok = int(cu[-1])
    p, q = rng.random((tok, v)).astype(F32) ** 2, rng.random((tok, v)).astype(F32)
    p, q = p / p.sum(1, keepdims=True), q / q.sum(1, keepdims=True)
    draft, u = rng.integers(0, v, tok).astype(np.int32), (rng.random(tok) * x.get("luck", 1)).astype(F32)
    noise, bonus = rng.exponential(size=(b, v)).astype(F32) + np.float32(1e-3), rng.integers(0, v, b).astype(np.int32)
    want = np.full((b, most + 1), -1, np.int32)
    for i in range(b):
        for j in range(min(lens[i], most)):
            r = cu[i] + j
            if p[r, draft[r]] < u[r] * q[r, draft[r]]:
                want[i, j] = np.argmax(np.maximum(p[r] - q[r], 0) / noise[i])
                break
            want[i, j] = draft[r]
        else:
            want[i, min(lens[i], most)] = bonus[i]
    tensors = {"draft": draft, "cu": cu, "q": q, "p": p, "q1": q.reshape(-1), "p1": p.reshape(-1), "u": u, "noise": noise, "bonus": bonus, "out": np.full((b, most + 1), -1, np.int32)}
    return Filled(tensors, {"TOK": tok, "TOKV": tok * v, "BP": b + 1, "B": b, "V": v, "K1": most + 1}, {"out": want})


def _inverse(rng: np.random.Generator, x: Axes) -> Filled:
    lens, h, n = x["lens"], x["H"], 16
    cu = offsets(lens)
    t, chunks = int(cu[-1]), [(s, c) for s, length in enumerate(lens) for c in range(-(-length // n))]
    a, want = normal(rng, t, h, n, dtype=F32) * np.float32(0.3), np.zeros((t, h, n))
    for s, c in chunks:
        lo, rows = cu[s] + n * c, min(lens[s] - n * c, n)
        a[lo : lo + rows] *= np.tril(np.ones((n, n)), -1)[:rows, None].astype(F32)
        for j in range(h):
            lower = np.eye(n)
            lower[:rows] += f64(a[lo : lo + rows, j])
            want[lo : lo + rows, j] = np.linalg.inv(lower)[:rows]
    tensors = {"A": a.reshape(t, -1), "Ai": empty(t, h * n), "cu": cu, "chunk1": np.array(chunks, np.int32).reshape(-1)}
    return Filled(tensors, {"T": t, "H": h, "HW": n * h, "NP": len(lens) + 1, "NC": len(chunks), "NC2": 2 * len(chunks)}, {"Ai": want.reshape(t, -1)})


def _allreduce(rng: np.random.Generator, x: Axes) -> Filled:
    p, r, d, parts = x["P"], x["R"], 1024, 4
    part, residual, weight = normal(rng, p, r, d), normal(rng, r, d), (rng.random(d) + 0.5).astype(F32)
    total = f64(part).sum(0) + f64(residual)
    stored = f64(total.astype(BF16))
    y = stored / np.sqrt((stored**2).mean(1, keepdims=True) + 1e-5) * f64(weight)
    tensors = {"part": part, "residual": residual, "weight": weight, "total": empty(r, d), "flags": np.zeros(r * parts, np.int32), "y": empty(r, d)}
    return Filled(tensors, {"P": p, "ROWS": r, "WORDS": r * parts, "eps": np.float32(1e-5)}, {"total": total, "y": y})


def _swiglu(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]

    def operand(rows: int) -> tuple[Array, Array, Array]:
        q, e = normal(rng, rows, k, dtype=E4M3), rng.integers(119, 124, (rows, k // 32)).astype(np.uint8)
        return q, e.view(np.uint32), f64(q) * np.repeat(np.exp2(e.astype(float) - 127), 32, 1)

    (a, sa, wide), (w, sw, w_wide) = operand(m), operand(2 * n)
    bias = normal(rng, 2 * n, dtype=F32)
    z = wide @ w_wide.T + f64(bias)
    g, u = np.minimum(z[:, :n], 7), np.clip(z[:, n:], -7, 7)
    tensors = {"X": a, "SX": sa, "W": w, "SW": sw, "bias": bias, "Y": empty(m, n)}
    return Filled(tensors, {"M": m, "K": k, "KW": k // 128, "N2": 2 * n, "N": n}, {"Y": g / (1 + np.exp(-1.702 * g)) * (u + 1)})


STRANGERS_MORE = (
    corpus("attention_backward_kv", ({"BH": 2, "S": 300}, {"BH": 1, "S": 50}), _backward, tolerance=1.5e-2),
    corpus("spec_reject", ({"lens": (3, 0, 4, 2), "V": 700, "K": 3}, {"lens": (1, 1, 2), "V": 60, "K": 2, "luck": 0.3}), _reject, ctas=2),
    corpus("tril_inverse", ({"lens": (18, 0, 3), "H": 3}, {"lens": (5,), "H": 4}), _inverse, params={"WARPS": 2}, tolerance=1e-2),
    corpus("allreduce_rmsnorm", ({"P": 3, "R": 3, "ctas": 3}, {"P": 1, "R": 2, "ctas": 5}), _allreduce, tolerance=1e-2),
    corpus("mxfp8_swiglu_oai", ({"M": 100, "N": 128, "K": 512}, {"M": 9, "N": 192, "K": 128}), _swiglu, ctas=2, tolerance=1e-2),
)

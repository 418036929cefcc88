"""Chunked recurrences: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, F32, Filled, corpus, empty, f64, normal, offsets


def _round(x: Any) -> Any:
    return f64(np.asarray(x, np.float32).astype(BF16))


def _gla(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    h, c, dk, dv = x["H"], 64, 64, 128
    cu = offsets(x["lengths"])
    t, ns = max(1, int(cu[-1])), len(x["lengths"])
    chunks = [-(-n // c) for n in x["lengths"]]
    chunk0 = offsets(tuple(chunks))
    nc = max(1, int(chunk0[-1]) * h)
    qg, kg, p = (0.3 * rng.standard_normal(s).astype(np.float32) for s in ((nc, c, dk), (nc, c, dk), (nc, c, c)))
    for s in range(ns):  # rows past a sequence's end are zero in the workspace
        tail = x["lengths"][s] % c
        if tail:
            last = slice((int(chunk0[s + 1]) - 1) * h, int(chunk0[s + 1]) * h)
            qg[last, tail:], kg[last, tail:], p[last, tail:], p[last, :, tail:] = 0, 0, 0, 0
    qg, kg, p = (a.astype(BF16) for a in (qg, kg, p))
    v, decay = normal(rng, t, h, dv), (0.5 + 0.5 * rng.random(nc, dtype=np.float32)).astype(np.float32)
    out, state = np.zeros((t, h, dv)), np.zeros((ns * h, dv, dk))
    for s in range(ns):
        for head in range(h):
            st = np.zeros((dv, dk))
            for i in range(chunks[s]):
                w = (int(chunk0[s]) + i) * h + head
                lo, hi = int(cu[s]) + i * c, min(int(cu[s]) + (i + 1) * c, int(cu[s + 1]))
                vc = np.zeros((c, dv))
                vc[: hi - lo] = f64(v[lo:hi, head])
                out[lo:hi, head] = (_round(st) @ f64(qg[w]).T + vc.T @ f64(p[w]).T).T[: hi - lo]
                st = st * float(decay[w]) + vc.T @ f64(kg[w])
            state[s * h + head] = st
    tensors = {"QG": qg, "KG": kg, "V": v, "P": p, "DECAY": decay, "O": empty(t, h, dv), "S1": empty(ns * h, dv, dk, dtype=F32), "CU": cu, "CHUNK0": chunk0}
    return Filled(tensors, {"T": t, "H": h, "NS": ns, "NC": nc, "NSH": ns * h}, {"O": out, "S1": state})


def _scores(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    nw, c, d = x["NW"], 64, 64
    k, beta = normal(rng, nw, c, d), rng.random((nw, c), dtype=np.float32)
    want = np.tril(f64(beta)[:, :, None] * (f64(k) @ np.swapaxes(f64(k), 1, 2)), -1)
    return Filled({"K": k, "BETA": beta, "S": empty(nw, c, c)}, dict(x), {"S": want})


RECURRENCE = (
    corpus("gated_linear_attention", ({"H": 1, "lengths": (40, 0, 330)}, {"H": 2, "lengths": (30,)}), _gla, tolerance=1e-2),
    corpus("chunk_scores", ({"NW": 2}, {"NW": 1}), _scores, params={"D": 64}),
)  # fmt: skip

"""Row kernels, quantisers and moves of an eighth stranger who had read the language page only: arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from bench.verify.cases.case import BF16, E4M3, F16, F32, Filled, corpus, empty, f64, normal, offsets, softmax

Axes = Mapping[str, Any]


def _hadamard(rng: np.random.Generator, x: Axes) -> Filled:
    h = np.ones((1, 1))
    while len(h) < 32:
        h = np.block([[h, h], [h, -h]])
    a = normal(rng, x["ROWS"], 32, 32, dtype=F16)
    return Filled({"X": a, "H": h.astype(F16), "Y": empty(x["ROWS"], 32, 32, dtype=F16)}, {"ROWS": x["ROWS"], "scale": 1 / 32}, {"Y": h @ f64(a) @ h / 32})


def _guided(rng: np.random.Generator, x: Axes) -> Filled:
    b, v, n = x["B"], x["V"], x["NM"]
    w, row = -(-v // 32), np.array(x["rows"], np.int32)
    a, bits = normal(rng, b, v, dtype=F32), rng.integers(0, 2**32, (n, w), dtype=np.uint64).astype(np.uint32)
    allowed = ((bits[:, np.arange(v) // 32] >> (np.arange(v) % 32).astype(np.uint32)) & 1).astype(bool)
    want = np.where((row >= 0)[:, None] & ~allowed[row], -np.inf, f64(a))
    return Filled({"LOGITS": a, "MASK": bits.view(np.int32), "ROW": row}, {"B": b, "V": v, "W": w, "NM": n}, {"LOGITS": want})


def _turned(x: Any, c: Any, s: Any) -> Any:
    """Halves of the last axis turned by the angles."""
    a, b = np.split(f64(x), 2, -1)
    return np.concatenate([a * c - b * s, b * c + a * s], -1)


def _sections(rng: np.random.Generator, x: Axes) -> Filled:
    t, h, p = x["T"], x["H"], x["P"]
    q, pos, angle = normal(rng, t, h, 128), rng.integers(0, p, (3, t)).astype(np.int32), rng.random((p, 64)) * 6
    c, s = np.cos(angle).astype(F32), np.sin(angle).astype(F32)
    which = np.repeat([0, 1, 2], [16, 24, 24])
    at = pos[which, :].T
    cc, ss = (f64(m)[at, np.arange(64)][:, None] for m in (c, s))
    return Filled({"Q": q, "POS": pos.reshape(-1), "COS": c, "SIN": s, "O": empty(t, h, 128)}, {"T": t, "T3": 3 * t, "H": h, "P": p}, {"O": _turned(q, cc, ss)})


def _silu(z: Any) -> Any:
    return z / (1 + np.exp(-z))


def _stepped(rng: np.random.Generator, x: Axes) -> Filled:
    b, h, n, slot = x["B"], x["H"], x["SLOTS"], np.array(x["slots"], np.int32)
    state, u, z, bc = normal(rng, n, h, 64, 128, dtype=F32), normal(rng, b, h, 64), normal(rng, b, h, 64), normal(rng, b, 256)
    dt, bias, a, d = normal(rng, b * h, dtype=F32), normal(rng, h, dtype=F32), -rng.random(h).astype(F32), normal(rng, h, dtype=F32)
    new, y = f64(state), np.zeros((b, h, 64))
    step = np.log1p(np.exp(f64(dt).reshape(b, h) + f64(bias)))
    for i in range(b):
        if slot[i] >= 0:
            old = f64(state)[slot[i]]
            put = step[i][:, None, None] * f64(u)[i][:, :, None] * f64(bc)[i, :128]
            new[slot[i]] = old * np.exp(step[i] * f64(a))[:, None, None] + put
            y[i] = (new[slot[i]] @ f64(bc)[i, 128:] + f64(d)[:, None] * f64(u)[i]) * _silu(f64(z)[i])
    tensors = {"STATE": state, "X": u, "Z": z, "DT": dt, "BIAS": bias, "A": a, "D": d, "BC": bc, "SLOT": slot, "Y": np.zeros((b, h, 64), BF16)}
    return Filled(tensors, {"B": b, "H": h, "BH": b * h, "SLOTS": n}, {"STATE": new, "Y": y})


def _modulated(rng: np.random.Generator, x: Axes) -> Filled:
    b, s, d = x["B"], x["S"], x["D"]
    a, mod = normal(rng, b, s, d) + BF16(0.5), normal(rng, b, 2 * d, dtype=F32)
    z = f64(a) - f64(a).mean(-1, keepdims=True)
    y = z / np.sqrt((z * z).mean(-1, keepdims=True) + 1e-6) * (1 + f64(mod)[:, None, :d]) + f64(mod)[:, None, d:]
    return Filled({"X": a, "MOD": mod, "Y": empty(b, s, d)}, {"B": b, "S": s}, {"Y": y})


def _hashed(rng: np.random.Generator, x: Axes) -> Filled:
    n, seed = x["N"], 12345
    a, r, h = normal(rng, n), normal(rng, n), np.arange(n, dtype=np.uint32) ^ np.uint32(seed)
    h = (h ^ (h >> 16)) * np.uint32(0x7FEB352D)
    h = (h ^ (h >> 15)) * np.uint32(0x846CA68B)
    keep = (h ^ (h >> 16)) >= np.uint32(x["threshold"])
    tensors = {"X": a, "R": r, "Y": empty(n), "KEPT": np.zeros(1, np.int32)}
    return Filled(tensors, {"N": n, "seed": seed, "threshold": x["threshold"], "scale": 1.5}, {"Y": f64(r) + keep * f64(a) * 1.5, "KEPT": np.array([keep.sum()], np.int32)})


def _nvfp4(rng: np.random.Generator, x: Axes) -> Filled:
    n, d, g = x["ROWS"], x["D"], np.float32(0.75)
    a = normal(rng, n, d)
    top = np.abs(a.astype(F32)).reshape(n, -1, 16).max(-1)
    s = (top * np.float32(1 / 448) * np.float32(448 / 6) * g).astype(E4M3)
    inv = np.where(s.astype(F32) > 0, g / np.maximum(s.astype(F32), np.float32(1e-30)), 0)
    q = np.clip(a.astype(F32) * np.repeat(inv, 16, 1).astype(F32), -6, 6).astype(ml_dtypes.float4_e2m1fn)
    return Filled({"X": a, "GLOBAL": np.array([g]), "Q": np.zeros((n, d), ml_dtypes.float4_e2m1fn), "S": empty(n, d // 16, dtype=E4M3)}, {"ROWS": n}, {"Q": f64(q), "S": f64(s)})


def _gathered(rng: np.random.Generator, x: Axes) -> Filled:
    lens, most = x["lens"], max(-(-n // 16) for n in x["lens"])
    b, total, cu = len(lens), sum(lens), offsets(lens)
    pages = b * most + 2
    cache, table = normal(rng, pages, 16, 576), rng.permutation(pages)[: b * most].astype(np.int32)
    want = np.concatenate([f64(cache)[table[i * most : (i + 1) * most]].reshape(-1, 576)[: lens[i]] for i in range(b)])
    tensors = {"CACHE": cache, "TABLE": table, "CU": cu, "OUT": empty(total, 576)}
    return Filled(tensors, {"PAGES": pages, "B": b, "B1": b + 1, "BP": b * most, "MAXP": most, "TOKENS": total}, {"OUT": want})


def _received(rng: np.random.Generator, x: Axes) -> Filled:
    cap, counts = x["CAP"], np.array(x["counts"], np.int32)
    e = len(counts)
    gu, q, s = normal(rng, e, cap, 1024), np.zeros((e, cap, 512)), np.ones((e, 4, cap))
    for i in range(e):
        y = _silu(f64(gu)[i, : counts[i], :512]) * f64(gu)[i, : counts[i], 512:]
        by = np.maximum(np.abs(y.reshape(-1, 4, 128)).max(-1) / 448, 1e-10)
        s[i, :, : counts[i]] = by.T
        q[i, : counts[i]] = f64((y.reshape(-1, 4, 128) / by[..., None]).astype(E4M3)).reshape(-1, 512)
    tensors = {"GU": gu, "COUNT": counts, "Q": np.zeros((e, cap, 512), E4M3), "S": np.ones((e, 4, cap), F32)}
    return Filled(tensors, {"E": e, "CAP": cap}, {"Q": q, "S": s})


def _tempered(rng: np.random.Generator, x: Axes) -> Filled:
    a = normal(rng, x["ROWS"], x["N"], dtype=F32) * 3
    return Filled({"X": a, "Y": empty(x["ROWS"], x["N"], dtype=F32)}, {"ROWS": x["ROWS"], "N": x["N"], "temperature": 0.7}, {"Y": softmax(f64(a) / 0.7)})


def _shifted(rng: np.random.Generator, x: Axes) -> Filled:
    lens, d = x["lens"], x["D"]
    t, b = sum(lens), len(lens)
    a, last, mu, seq, start = normal(rng, t, d), normal(rng, b, d), rng.random((3, d)).astype(F32), np.repeat(np.arange(b), lens).astype(np.int32), offsets(lens)[:-1]
    before = np.concatenate([np.zeros((1, d)), f64(a)[:-1]])
    for i in range(b):
        if lens[i]:
            before[start[i]] = f64(last)[i]
    r, k, v = (f64(a) + (before - f64(a)) * f64(mu)[i] for i in range(3))
    tensors = {"X": a, "LAST": last, "SEQ": seq, "START": start, "MU": mu, "R": empty(t, d), "K": empty(t, d), "V": empty(t, d)}
    return Filled(tensors, {"T": t, "B": b}, {"R": r, "K": k, "V": v})


def _interleaved(rng: np.random.Generator, x: Axes) -> Filled:
    t, h, p = x["T"], x["H"], x["P"]
    a, pos, angle = normal(rng, t, h, 128), rng.integers(0, p, t).astype(np.int32), rng.random((p, 32)) * 6
    cs = np.concatenate([np.cos(angle), np.sin(angle)], 1).astype(F32)
    c, s, y = f64(cs)[pos, None, :32], f64(cs)[pos, None, 32:], f64(a)
    u, v = f64(a)[..., 0:64:2], f64(a)[..., 1:64:2]
    y[..., 0:64:2], y[..., 1:64:2] = u * c - v * s, v * c + u * s
    return Filled({"X": a, "POS": pos, "CS": cs, "Y": empty(t, h, 128)}, {"T": t, "H": h, "P": p}, {"Y": y})


NEWCOMERS_ROWS = (
    corpus("hadamard_mma", ({"ROWS": 9}, {"ROWS": 3}), _hadamard, ctas=1),
    corpus("token_bitmask", ({"B": 3, "V": 1500, "NM": 2, "rows": (1, -1, 0)}, {"B": 4, "V": 40, "NM": 3, "rows": (0, 2, 1, -1)}), _guided, target="sm_89"),
    corpus("mrope_sections", ({"T": 3, "H": 6, "P": 9}, {"T": 4, "H": 3, "P": 5}), _sections, ctas=2, target="sm_121a"),
    corpus("selective_state_update", ({"B": 3, "H": 2, "SLOTS": 5, "slots": (3, -1, 0)}, {"B": 2, "H": 3, "SLOTS": 2, "slots": (1, 0)}), _stepped, tolerance=1e-2),
    corpus("adaln_modulate", ({"B": 2, "S": 5, "D": 2048}, {"B": 3, "S": 2, "D": 2048}), _modulated, ctas=2),
    corpus("dropout_hash_residual", ({"N": 5000, "threshold": 2**30}, {"N": 100, "threshold": 2**31}), _hashed, target="sm_103a"),
    corpus("nvfp4_quant_rows", ({"ROWS": 7, "D": 1024}, {"ROWS": 3, "D": 1024}), _nvfp4, ctas=1, target="sm_103a", tolerance=0.34),
    corpus("gather_pages_contiguous", ({"lens": (50, 0, 33, 16)}, {"lens": (3, 20)}), _gathered, params={"STAGES": 3}, ctas=2, target="sm_90a"),
    corpus("silu_mul_masked_quant", ({"CAP": 20, "counts": (17, 0, 5)}, {"CAP": 4, "counts": (1, 4)}), _received, target="sm_89", tolerance=8e-2),
    corpus("softmax_clc_sm120", ({"ROWS": 5, "N": 2500}, {"ROWS": 3, "N": 100}), _tempered, ctas=2, target="sm_120a"),
    corpus("token_shift_mix", ({"lens": (3, 1, 4), "D": 1024}, {"lens": (1, 2), "D": 1024}), _shifted, target="sm_80", tolerance=1e-2),
    corpus("rope_interleaved_pairs", ({"T": 5, "H": 3, "P": 9}, {"T": 2, "H": 2, "P": 5}), _interleaved, ctas=2),
)

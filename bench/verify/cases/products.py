"""Products in other styles: shared K, lists of blocks, gathered rows, drawn tiles; arguments and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases.case import BF16, E4M3, F16, F32, Filled, corpus, empty, f64, normal, offsets

Axes = Mapping[str, Any]


def _nt(dtype: Any = BF16, out: Any = BF16) -> Any:
    """Fill for C = A B^T."""

    def fill(rng: np.random.Generator, x: Axes) -> Filled:
        a, b = normal(rng, x["M"], x["K"], dtype=dtype), normal(rng, x["N"], x["K"], dtype=dtype)
        return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"], dtype=out)}, dict(x), {"C": f64(a) @ f64(b).T})

    return fill


def _stream_k(rng: np.random.Generator, x: Axes) -> Filled:
    f = _nt()(rng, x)
    f.tensors.update({"WS": empty(x["UNITS"], 64, 64, dtype=F32), "READY": np.zeros(x["UNITS"], np.int32)})
    return f


def _drawn(rng: np.random.Generator, x: Axes) -> Filled:
    f = _nt(BF16, F32)(rng, x)
    f.tensors["NEXT"] = np.zeros(1, np.int32)
    return f


def _added(rng: np.random.Generator, x: Axes) -> Filled:
    f = _nt(F16, F32)(rng, x)
    f.tensors["C"] = np.zeros((x["M"], x["N"]), np.float32)
    return f


def _tf32(rng: np.random.Generator, x: Axes) -> Filled:
    a, b = (_truncated(rng.standard_normal((n, x["K"]), dtype=np.float32)) for n in (x["M"], x["N"]))
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"], dtype=F32)}, dict(x), {"C": f64(a) @ f64(b).T})


def _truncated(x: Any) -> Any:
    """Values that tf32 holds exactly."""
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _sparse(rng: np.random.Generator, x: Axes) -> Filled:
    rows, ptr, kb, n = len(x["blocks"]), offsets(x["blocks"]), x["KB"], x["N"]
    nnz = max(1, int(ptr[-1]))
    v, cols, b = normal(rng, nnz, 64, 64), rng.integers(0, kb, nnz).astype(np.int32), normal(rng, kb * 64, n)
    want = np.zeros((64 * rows, n))
    for i in range(rows):
        for j in range(ptr[i], ptr[i + 1]):
            want[64 * i : 64 * i + 64] += f64(v[j]) @ f64(b[64 * cols[j] : 64 * cols[j] + 64])
    tensors = {"V": v, "COLS": cols, "PTR": ptr, "B": b, "C": empty(64 * rows, n, dtype=F32)}
    return Filled(tensors, {"M": 64 * rows, "N": n, "K": kb * 64, "MB1": rows + 1, "NNZ": nnz}, {"C": want})


def _two(rng: np.random.Generator, x: Axes) -> Filled:
    a, w, v = (normal(rng, n, x["K"]) for n in (x["M"], x["N"], x["N2"]))
    tensors = {"X": a, "W": w, "V": v, "Y": empty(x["M"], x["N"]), "Z": empty(x["M"], x["N2"], dtype=F32)}
    return Filled(tensors, dict(x), {"Y": f64(a) @ f64(w).T, "Z": f64(a) @ f64(v).T})


def _grouped(rng: np.random.Generator, x: Axes) -> Filled:
    offs, g = offsets(x["lengths"]), len(x["lengths"])
    t = max(1, int(offs[-1]))
    a, w = normal(rng, t, x["K"], dtype=F16), normal(rng, g, x["N"], x["K"], dtype=F16)
    want = np.zeros((t, x["N"]))
    for i in range(g):
        want[offs[i] : offs[i + 1]] = f64(a[offs[i] : offs[i + 1]]) @ f64(w[i]).T
    tensors = {"A": a, "W": w, "C": empty(t, x["N"], dtype=F16), "OFFS": offs}
    return Filled(tensors, {"T": t, "G": g, "G1": g + 1, "N": x["N"], "K": x["K"]}, {"C": want})


def _moe_up(rng: np.random.Generator, x: Axes) -> Filled:
    count, e, cap, t, k, n = x["counts"], len(x["counts"]), x["CAP"], x["T"], x["K"], x["N"]
    a, w, token = normal(rng, t, k), normal(rng, e, n, k), rng.integers(0, t, (e, cap)).astype(np.int32)
    want = np.zeros((e, cap, n))
    for i in range(e):
        want[i, : count[i]] = np.maximum(f64(a[token[i, : count[i]]]) @ f64(w[i]).T, 0)
    tensors = {"X": a, "W": w, "TOKEN": token, "COUNT": np.array(count, np.int32), "H": np.zeros((e, cap, n), BF16)}
    return Filled(tensors, {"T": t, "K": k, "N": n, "E": e, "CAP": cap}, {"H": want})


def _moe_down(rng: np.random.Generator, x: Axes) -> Filled:
    count, e, cap, n, k = x["counts"], len(x["counts"]), x["CAP"], x["N"], x["K"]
    h, w = normal(rng, e, cap, k), normal(rng, e, n, k)
    want = np.zeros((e, cap, n))
    for i in range(e):
        want[i, : count[i]] = f64(h[i, : count[i]]) @ f64(w[i]).T
    tensors = {"H": h, "W": w, "COUNT": np.array(count, np.int32), "Y": np.zeros((e, cap, n), BF16)}
    return Filled(tensors, {"E": e, "CAP": cap, "N": n, "K": k}, {"Y": want})


def _ada(rng: np.random.Generator, x: Axes) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b = normal(rng, m, k, dtype=E4M3), normal(rng, n, k, dtype=E4M3)
    sa, sb = (rng.random(extent, dtype=np.float32) + np.float32(0.5) for extent in (m, n))
    return Filled({"A": a, "B": b, "SA": sa, "SB": sb, "C": empty(m, n)}, dict(x), {"C": f64(a) @ f64(b).T * f64(sa)[:, None] * f64(sb)})


def _conv(rng: np.random.Generator, x: Axes) -> Filled:
    b, h, w, c, ko = (x[n] for n in ("B", "H", "W", "C", "KO"))
    image, taps = normal(rng, b, h, w, c), normal(rng, 9, ko, c)
    padded = np.pad(f64(image), ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = np.zeros((b, h, w, ko))
    for r in range(3):
        for s in range(3):
            want += padded[:, r : r + h, s : s + w] @ f64(taps[3 * r + s]).T
    return Filled({"X": image, "F": taps, "Y": empty(b, h, w, ko)}, {**x, "TAPS": 9}, {"Y": want})


def _prepared(rng: np.random.Generator, x: Axes) -> Filled:
    a, b = rng.integers(-127, 128, (x["M"], x["K"]), dtype=np.int8), normal(rng, x["N"], x["K"])
    scale = (rng.random(x["M"], dtype=np.float32) + np.float32(0.5)) / np.float32(64)
    rounded = (a.astype(np.float32) * scale[:, None]).astype(BF16)
    return Filled({"A": a, "S": scale, "B": b, "C": empty(x["M"], x["N"], dtype=F32)}, dict(x), {"C": f64(rounded) @ f64(b).T})


PRODUCTS = (
    corpus("gemm_stream_k", ({"M": 130, "N": 72, "K": 200, "UNITS": 5}, {"M": 70, "N": 40, "K": 64, "UNITS": 2, "ctas": 1}, {"M": 64, "N": 64, "K": 504, "UNITS": 3}), _stream_k, params={"STAGES": 2}, ctas=2),
    corpus("gemm_blocksparse", ({"blocks": (3, 0, 7), "KB": 4, "N": 72}, {"blocks": (1, 1, 1, 1, 1, 1), "KB": 2, "N": 40, "ctas": 1}), _sparse, params={"STAGES": 2}, ctas=2),
    corpus("gemm_store_role", ({"M": 300, "N": 136, "K": 200}, {"M": 600, "N": 72, "K": 64, "ctas": 1}), _nt(F16, F16), params={"BN": 64, "STAGES": 2}, ctas=2),
    corpus("gemm_warp_consumers", ({"M": 130, "N": 72, "K": 200}, {"M": 260, "N": 40, "K": 24, "ctas": 1}), _nt(), ctas=2),
    corpus("cp_async_tf32", ({"M": 130, "N": 136, "K": 200}, {"M": 72, "N": 40, "K": 12}), _tf32),
    corpus("gemm_clc_tf32", ({"M": 300, "N": 136, "K": 100}, {"M": 300, "N": 72, "K": 32, "ctas": 1}), _tf32, ctas=2),
    corpus("gemm_split_send", ({"M": 130, "N": 136, "K": 200}, {"M": 260, "N": 40, "K": 64}), _nt(BF16, F32), ctas=4),
    corpus("two_products", ({"M": 130, "N": 72, "N2": 136, "K": 200}, {"M": 260, "N": 40, "N2": 12, "K": 64, "ctas": 1}), _two, ctas=2),
    corpus("gemm_drawn_tiles", ({"M": 200, "N": 136, "K": 200}, {"M": 580, "N": 72, "K": 64, "ctas": 1}), _drawn, params={"STAGES": 2}, ctas=2),
    corpus("gemm_add_up", ({"M": 130, "N": 72, "K": 456}, {"M": 64, "N": 40, "K": 64}), _added, params={"STAGES": 2}),
    corpus("gemm_grouped_cp_async", ({"lengths": (40, 0, 5, 33), "N": 72, "K": 104}, {"lengths": (1, 32, 0, 31), "N": 40, "K": 24, "ctas": 1}), _grouped, ctas=2),
    corpus("gemm_fp8_ada", ({"M": 72, "N": 72, "K": 208}, {"M": 72, "N": 40, "K": 48}), _ada, tolerance=8e-3),
    corpus("moe_gather_up", ({"counts": (40, 0, 5), "CAP": 64, "T": 50, "K": 104, "N": 72}, {"counts": (3,), "CAP": 32, "T": 5, "K": 24, "N": 40}), _moe_up),
    corpus("moe_masked_down", ({"counts": (100, 0, 64, 30), "CAP": 128, "N": 72, "K": 200}, {"counts": (0, 10, 0, 70, 1), "CAP": 70, "N": 40, "K": 64, "ctas": 1}), _moe_down, ctas=2),
    corpus("pairs_meeting", ({"M": 72, "N": 72, "K": 192}, {"M": 130, "N": 40, "K": 64, "ctas": 1}), _prepared, ctas=2),
    corpus("conv_implicit", ({"B": 1, "H": 4, "W": 70, "C": 72, "KO": 72}, {"B": 2, "H": 3, "W": 20, "C": 16, "KO": 8, "ctas": 1}), _conv, ctas=2),
)  # fmt: skip

"""Schedules whose products take block scales: quantised operands, scales packed as the instructions read them, and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from bench.verify.cases.case import E4M3, Array, Case, Filled, corpus, empty, f64

E2M1, UE8M0 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu


def powers(rng: np.random.Generator, rows: int, blocks: int) -> Array:
    """ue8m0 scales from 1/8 to 8."""
    return np.exp2(rng.integers(-3, 4, (rows, blocks))).astype(UE8M0)


def quarters(rng: np.random.Generator, rows: int, blocks: int) -> Array:
    """Positive e4m3 scales."""
    return rng.uniform(0.25, 4.0, (rows, blocks)).astype(E4M3)


def elements(rng: np.random.Generator, rows: int, cols: int, dtype: Any) -> Array:
    """Elements that use the range of a narrow type."""
    return np.clip(2.0 * rng.standard_normal((rows, cols)), -6, 6).astype(dtype)


def atoms(scales: Array) -> Array:
    """(rows, blocks) as atoms of 128 rows and four blocks, (rows / 128, blocks / 4, 32, 16): row r of an atom lies in line r mod 32, word r div 32.
    Rows past the end are scaled by one."""
    rows, blocks = scales.shape
    full = np.ones((-(-rows // 128) * 128, blocks), np.float32).astype(scales.dtype)
    full[:rows] = scales
    return np.ascontiguousarray(full.reshape(-1, 4, 32, blocks // 4, 4).transpose(0, 3, 2, 1, 4)).reshape(-1, blocks // 4, 32, 16)


def words(scales: Array) -> Array:
    """(rows, blocks) as words of four blocks, (blocks / 4, rows), the first in the low byte."""
    return np.ascontiguousarray(np.ascontiguousarray(scales).view(np.uint8).view("<u4").T)


def scaled(x: Array, scales: Array) -> Array:
    """What an operand stands for, in float64."""
    return f64(x) * np.repeat(f64(scales), x.shape[1] // scales.shape[1], axis=1)


def _made(rng: np.random.Generator, x: Mapping[str, Any], dtype: Any, block: int, draw: Any, packed: Any, **more: Any) -> Filled:
    m, n, k = x["M"], x["N"], x["K"]
    a, b, sa, sb = elements(rng, m, k, dtype), elements(rng, n, k, dtype), draw(rng, m, k // block), draw(rng, n, k // block)
    want = scaled(a, sa) @ scaled(b, sb).T * more.get("alpha", 1.0)
    return Filled({"A": a, "B": b, "SA": packed(sa), "SB": packed(sb), "C": empty(m, n)}, {**x, **more}, {"C": want})


def _in_atoms(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    return _made(rng, x, E4M3, 32, powers, atoms, MB=-(-x["M"] // 128), NB=-(-x["N"] // 128), KB=x["K"] // 128)


def _in_small_atoms(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    return _made(rng, x, E2M1, 16, quarters, atoms, MB=-(-x["M"] // 128), NB=-(-x["N"] // 128), KB=x["K"] // 64, alpha=0.5)


def _in_words(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    return _made(rng, x, E4M3, 32, powers, words, KW=x["K"] // 128)


def _in_small_words(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    made = _made(rng, x, E2M1, 16, quarters, words, KW=x["K"] // 64)
    return Filled({**made.tensors, "C": empty(x["M"], x["N"], dtype=np.float32)}, made.scalars, made.expected)


BLOCK_SCALES: tuple[Case, ...] = (
    corpus("tcgen05_mxf8_gemm", ({"M": 300, "N": 72, "K": 384}, {"M": 300, "N": 72, "K": 128, "ctas": 1}), _in_atoms, params={"STAGES": 2}, ctas=1),
    corpus("tcgen05_nvf4_pair_gemm", ({"M": 300, "N": 72, "K": 768}, {"M": 600, "N": 72, "K": 256}), _in_small_atoms, params={"STAGES": 2}, ctas=2),
    corpus("mxf8_mma_sync_gemm", ({"M": 200, "N": 72, "K": 384}, {"M": 200, "N": 40, "K": 128, "ctas": 1}), _in_words, params={"BM": 64}, ctas=2),
    corpus("nvf4_mma_sync_gemm", ({"M": 136, "N": 72, "K": 640}, {"M": 72, "N": 40, "K": 128}), _in_small_words),
)  # fmt: skip

"""The six example schedules at small shapes: arguments, and float64 oracles of what each computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from cake_backend.simulate import SimResult, simulate
from cake_ir import parse, specialise
from cake_ir.program import Program
from cake_ir.walk import RoleCode, compile_roles

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True)
class Case:
    """One example at one shape: text edits applied to it, tunables, arguments, and the outputs it must give within `tolerance`
    (a multiple of the largest expected magnitude; 0 means bit for bit)."""

    name: str
    file: str
    tensors: dict[str, Any]
    scalars: dict[str, Any]
    expected: dict[str, Any]
    tolerance: float
    params: dict[str, Any] = field(default_factory=dict)
    edits: tuple[tuple[str, str], ...] = ()
    ctas: int | None = None

    def program(self, *edits: tuple[str, str]) -> Program:
        return program_of(self.file, tuple(sorted(self.params.items())), self.edits + edits)

    def run(self, *edits: tuple[str, str], **options: Any) -> SimResult:
        program, code = compiled(self.file, tuple(sorted(self.params.items())), self.edits + edits)
        return simulate(program, self.tensors, self.scalars, ctas=self.ctas, code=code, **options)

    def wrong(self, result: SimResult) -> str:
        """Where the numbers of a run differ from the oracle, empty if they do not."""
        for name, want in self.expected.items():
            got = result.outputs[name].astype(np.float64)
            if not np.isfinite(got).all():
                return f"{name} has {np.count_nonzero(~np.isfinite(got))} elements that are not finite"
            error = np.abs(got - want).max() / max(1e-30, np.abs(want).max())
            if error > self.tolerance:
                return f"{name} is off by {error:.2e}"
        return ""

    def error(self, result: SimResult) -> float:
        return max(
            float(np.abs(result.outputs[n].astype(np.float64) - w).max() / max(1e-30, np.abs(w).max())) for n, w in self.expected.items()
        )


@lru_cache(maxsize=256)
def program_of(file: str, params: tuple[tuple[str, Any], ...], edits: tuple[tuple[str, str], ...]) -> Program:
    text = (EXAMPLES / file).read_text("utf-8")
    for old, new in edits:
        assert text.count(old) == 1, f"{file} has {text.count(old)} of: {old}"
        text = text.replace(old, new)
    module = parse(text, file)
    assert not module.faults, module.faults
    found = specialise(module.schedule(None), dict(params) or None)
    assert found.program is not None, found.faults
    return found.program


@lru_cache(maxsize=256)
def compiled(file: str, params: tuple[tuple[str, Any], ...], edits: tuple[tuple[str, str], ...]) -> tuple[Program, RoleCode]:
    program = program_of(file, params, edits)
    return program, compile_roles(program)


def _normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(BF16)


def _f64(x: Any) -> Any:
    return np.asarray(x).astype(np.float64)


def _nan(*shape: int, dtype: Any = BF16) -> Any:
    return np.full(shape, np.nan, np.float32).astype(dtype)


# ------------------------------------------------------------------ matrix multiplication

ONE_CTA = (
    ('lm.launch(grid="persistent", cluster=(2, 1))', 'lm.launch(grid="persistent")'),
    (', multicast="m")', ")"),
    ('primed=True, scope="cluster")', "primed=True)"),
    ('raster="m", swizzle=8,\n                         cluster=(2, 1))', 'raster="m", swizzle=8)'),
)


def gemm(name: str, file: str, m: int, n: int, k: int, **rest: Any) -> Case:
    a, b = _normal(1, m, k), _normal(2, n, k)
    return Case(name, file, {"A": a, "B": b, "C": _nan(m, n)}, {"M": m, "N": n, "K": k}, {"C": _f64(a) @ _f64(b).T}, 4e-3, **rest)


GEMM_WS = gemm("gemm_ws", "gemm_ws.py", 300, 200, 256, params={"BN": 128}, ctas=4)
GEMM_WS_ONE_CTA = gemm("gemm_ws, one CTA a cluster", "gemm_ws.py", 300, 200, 256, params={"BN": 128}, edits=ONE_CTA, ctas=2)
GEMM_SM80 = gemm("gemm_sm80", "gemm_sm80.py", 200, 136, 200)


# ------------------------------------------------------------------ attention


def fmha(name: str, s: int, causal: bool, b: int = 1, h: int = 1, d: int = 64, **params: Any) -> Case:
    q, k, v = (_normal(i, b, h, s, d) for i in (3, 4, 5))
    scores = _f64(q) @ _f64(k).transpose(0, 1, 3, 2) / np.sqrt(d)
    if causal:
        scores = np.where(np.tril(np.ones((s, s), bool)), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    p = np.exp(scores - top)
    total = p.sum(-1, keepdims=True)
    lse = (top + np.log(total))[..., 0] * np.log2(np.e)
    tensors = {"Q": q, "K": k, "V": v, "O": _nan(b, h, s, d), "LSE": _nan(b, h, s, dtype=np.float32)}
    scalars = {"B": b, "H": h, "S": s, "scale_log2": float(np.log2(np.e) / np.sqrt(d))}
    return Case(
        name, "fmha_fwd.py", tensors, scalars, {"O": p / total @ _f64(v), "LSE": lse}, 8e-3, {"D": d, "CAUSAL": causal, **params}, ctas=3
    )


FMHA_CAUSAL = fmha("fmha_fwd, causal", 300, True)
FMHA_FULL = fmha("fmha_fwd, full, 64 keys a block", 300, False, BN=64)
FMHA_ONE_BLOCK = fmha("fmha_fwd, one block", 128, True, h=2)


# ------------------------------------------------------------------ k-means


def kmeans(nb: int, points: int, centroids: int, d: int = 128) -> Case:
    x, mu = _normal(6, nb, points, d), _normal(7, nb, centroids, d)
    square = (_f64(mu) ** 2).sum(-1).astype(np.float32)
    dist = _f64(square)[:, None, :] - 2 * _f64(x) @ _f64(mu).transpose(0, 2, 1)
    best = dist.argmin(-1)
    tensors = {"X": x, "MU": mu, "MU_SQ": square, "IDX": np.full((nb, points), -1, np.int32), "DIST": _nan(nb, points, dtype=np.float32)}
    expected = {"IDX": best.astype(np.float64), "DIST": np.take_along_axis(dist, best[..., None], -1)[..., 0]}
    return Case("kmeans_assign", "kmeans_assign.py", tensors, {"NB": nb, "NP": points, "NK": centroids}, expected, 2e-6, ctas=2)


KMEANS = kmeans(2, 600, 300)


# ------------------------------------------------------------------ KDA


def kda(lengths: tuple[int, ...], heads: int, c: int = 64, dk: int = 128, dv: int = 128) -> Case:
    rng = np.random.default_rng(8)
    chunks = [-(-n // c) for n in lengths]
    total, blocks = sum(lengths), sum(chunks)
    cu = np.cumsum([0, *lengths]).astype(np.int32)
    chunk0 = np.cumsum([0, *chunks]).astype(np.int32)

    def work(*shape: int, scale: float) -> Any:
        return (rng.standard_normal((blocks * heads, *shape)) * scale).astype(BF16)

    kd, qd, kr = (work(c, dk, scale=0.09) for _ in range(3))
    inv, mqk = work(c, c, scale=0.1), work(c, c, scale=0.1)
    gt = rng.uniform(0.7, 1.0, (blocks * heads, dk)).astype(np.float32)
    beta = rng.uniform(0.3, 1.0, (blocks * heads, c)).astype(np.float32)
    v = rng.standard_normal((total, heads, dv)).astype(BF16)
    s0 = (rng.standard_normal((len(lengths) * heads, dv, dk)) * 0.3).astype(np.float32)
    o, s1 = np.zeros((total, heads, dv)), np.zeros(s0.shape)
    for i, n in enumerate(lengths):
        for h in range(heads):
            state = _f64(s0[i * heads + h])
            for j in range(chunks[i]):
                w = (int(chunk0[i]) + j) * heads + h
                rows = min(c, n - j * c)
                # The block reads 64 rows of V whatever the sequence's end: the intra-chunk factors of real chunks are zero there.
                vt = np.zeros((c, dv))
                at = int(cu[i]) + j * c
                took = _f64(v[at : at + c, h])
                vt[: len(took)] = took
                u = (vt.T - _bf(state) @ _f64(kd[w]).T) * beta[w][None, :]
                u = _bf(u) @ _f64(inv[w]).T
                out = _bf(state) @ _f64(qd[w]).T + _bf(u) @ _f64(mqk[w]).T
                state = state * gt[w][None, :] + _bf(u) @ _f64(kr[w])
                o[at : at + rows, h] = out.T[:rows]
            s1[i * heads + h] = state
    tensors = {
        "KD": kd, "QD": qd, "KR": kr, "INV": inv, "MQK": mqk, "GT": gt, "BETA": beta, "V": v, "O": _nan(total, heads, dv), "S0": s0,
        "S1": _nan(*s0.shape, dtype=np.float32), "CU": cu, "CHUNK0": chunk0,
    }  # fmt: skip
    return Case("kda_inter", "kda_inter.py", tensors, {"H": heads, "NSEQ": len(lengths)}, {"O": o, "S1": s1}, 8e-3)


def _bf(x: Any) -> Any:
    """Rounded to bf16 where the kernel rounds an operand, in float64."""
    return np.asarray(x).astype(np.float32).astype(BF16).astype(np.float64)


KDA = kda((150, 64, 30), 2)


# ------------------------------------------------------------------ RMSNorm


def rmsnorm(rows: int, d: int) -> Case:
    x, w = _normal(9, rows, d), _normal(10, d)
    y = _f64(x) / np.sqrt((_f64(x) ** 2).mean(-1, keepdims=True) + 1e-5) * _f64(w)
    tensors = {"X": x, "W": w, "Y": _nan(rows, d)}
    return Case("rmsnorm", "rmsnorm.py", tensors, {"ROWS": rows, "eps": 1e-5}, {"Y": y}, 4e-3, {"D": d}, ctas=3)


RMSNORM = rmsnorm(9, 2048)

CASES = (GEMM_WS, GEMM_WS_ONE_CTA, FMHA_CAUSAL, FMHA_FULL, FMHA_ONE_BLOCK, KMEANS, KDA, RMSNORM, GEMM_SM80)

# The same schedules where every interleaving is tried: fewer tiles of the costly ones.
FUZZED = (
    GEMM_WS,
    GEMM_WS_ONE_CTA,
    FMHA_CAUSAL,
    FMHA_FULL,
    FMHA_ONE_BLOCK,
    kmeans(1, 600, 300),
    kda((150, 30), 1),
    RMSNORM,
    gemm("gemm_sm80", "gemm_sm80.py", 140, 72, 200),
)

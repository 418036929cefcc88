"""Y[M,N] = X[M,K] @ W[N,K].T for M <= 16 in bf16 with f32 accumulation: what a decode step multiplies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import AxisDomain, Distribution, Peer, Scalar, Shape, Task, Tensor, Tolerance
from cake_kernels.draws import normal, rounded, row_scales, small_integers, sprinkle

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

CHUNK = 2**25  # float64 elements of W held at a time (256 MiB)
SIZES = ((128, 2880), (128, 7168), (256, 7168), (384, 7168), (512, 2880), (1024, 2048), (2112, 7168), (2880, 4096), (2048, 14336), (5120, 2880))


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """The product in float64, W taken in chunks of rows; its scale is |x_i| |w_j| / sqrt(K), the size of a sum of random signs."""
    x = (inputs["X"] if rows is None else inputs["X"][rows]).astype(np.float64)
    out, scale = np.empty((len(x), axes["N"])), np.empty((len(x), axes["N"]))
    step = max(1, CHUNK // axes["K"])
    with np.errstate(invalid="ignore"):  # inf - inf is NaN in the kernel as well
        length = np.linalg.norm(x, axis=1) / np.sqrt(axes["K"])
        for n in range(0, axes["N"], step):
            w = inputs["W"][n : n + step].astype(np.float64)
            out[:, n : n + step] = x @ w.T
            scale[:, n : n + step] = np.outer(length, np.linalg.norm(w, axis=1))
    return {"Y": out, "Y.scale": scale}


def _pair(rng: np.random.Generator, axes: Mapping[str, int], draw: Any) -> dict[str, Array]:
    return {"X": draw(rng, (axes["M"], axes["K"])), "W": draw(rng, (axes["N"], axes["K"]))}


def _special(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    made = _pair(rng, axes, normal)
    return {**made, "W": sprinkle(rng, made["W"], (np.nan, np.inf, -np.inf), 1e-6)}


TASK = Task(
    name="tiny_gemm",
    doc="Y = X @ W.T for at most 16 rows X[M,K] and weights W[N,K] in bf16; Y[M,N] is bf16, sums are f32",
    axes=("M", "N", "K"),
    tensors={
        "X": Tensor(("M", "K"), "bf16", widens=True),
        "W": Tensor(("N", "K"), "bf16", widens=True, doc="weights, read once"),
        "Y": Tensor(("M", "N"), "bf16", "out"),
    },
    scalars={"M": Scalar("i32", "M"), "N": Scalar("i32", "N"), "K": Scalar("i32", "K")},
    shapes=(
        Shape("sim_ragged", {"M": 5, "N": 40, "K": 1096}, "sim"),
        Shape("sim_sixteen", {"M": 16, "N": 48, "K": 2048}, "sim"),
        Shape("sim_short_k", {"M": 8, "N": 24, "K": 320}, "sim"),
        Shape("sim_three", {"M": 3, "N": 16, "K": 712}, "sim"),
        Shape("wide_2048", {"M": 7, "N": 2048, "K": 1536}),
        Shape("edge_one", {"M": 1, "N": 8, "K": 8}, "edge"),
        Shape("edge_ragged", {"M": 15, "N": 56, "K": 520}, "edge"),
        Shape("edge_long_k", {"M": 3, "N": 104, "K": 9224}, "edge"),
        Shape("edge_no_rows", {"M": 0, "N": 56, "K": 520}, "edge"),
        *(Shape(f"m{m}_n{n}_k{k}", {"M": m, "N": n, "K": k}, "bench") for n, k in SIZES for m in (1, 4, 8, 16)),
    ),
    distributions=(
        Distribution("normal", lambda rng, axes: _pair(rng, axes, normal), doc="standard normal"),
        Distribution(
            "positive", lambda rng, axes: _pair(rng, axes, lambda r, s: rounded(r.random(s, dtype=np.float32) + np.float32(0.5))),
            doc="0.5 to 1.5: sums grow with K, so a short accumulator shows",
        ),
        Distribution(
            "scaled", lambda rng, axes: _pair(rng, axes, lambda r, s: rounded(r.standard_normal(s, dtype=np.float32) * row_scales(r, s[0]))),
            doc="each row of X and of W has its own power of two, 2^-12 to 2^12",
        ),
        Distribution("integers", lambda rng, axes: _pair(rng, axes, small_integers), exact=True, doc="-3 to 3: the f32 sums are exact"),
        Distribution("special", _special, doc="a few NaN and infinite weights: non-finite results must match in place"),
    ),
    tolerances={
        "Y": Tolerance(
            rtol=5e-3,
            scaled=5e-4,
            reason="rounding to bf16 costs up to 2^-8 of the value; f32 sums over K <= 14336 are off by less than 5e-4 of "
            "|x| |w| / sqrt(K), sums kept in bf16 by more than 1e-2",
        )
    },
    oracle=oracle,
    domain={"M": AxisDomain(1, 16), "N": AxisDomain(8, 2048, 8), "K": AxisDomain(8, 4096, 8)},
    flops="2 * M * N * K",
    peers=(
        Peer("cuBLAS", "peers:cublas_tiny", "torch.matmul on the transposed view"),
        Peer("DeepGEMM", "peers:deep_gemm_tiny", "bf16_gemm_nt"),
    ),
)

"""C[M,N] = A[M,K] @ B[N,K].T in bf16 with f32 accumulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import AxisDomain, Distribution, Peer, Scalar, Shape, Task, Tensor, Tolerance
from cake_kernels.draws import normal, rounded, row_scales, small_integers, sprinkle

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

CHUNK = 2**25  # float64 elements of B held at a time (256 MiB)
LLM = ((10240, 8192), (57344, 8192), (8192, 28672), (5120, 25600))  # N and K of projections of large models


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """The product in float64, B taken in chunks of rows; its scale is |a_i| |b_j| / sqrt(K), the size of a sum of random signs."""
    a = inputs["A"] if rows is None else inputs["A"][rows]
    a = a.astype(np.float64)
    out, scale = np.empty((a.shape[0], axes["N"])), np.empty((a.shape[0], axes["N"]))
    step = max(1, CHUNK // max(1, axes["K"]))
    with np.errstate(invalid="ignore"):  # inf - inf is NaN in the kernel as well
        length = np.sqrt(np.einsum("ik,ik->i", a, a) / axes["K"])
        for n in range(0, axes["N"], step):
            b = inputs["B"][n : n + step].astype(np.float64)
            out[:, n : n + step] = a @ b.T
            scale[:, n : n + step] = np.outer(length, np.sqrt(np.einsum("ik,ik->i", b, b)))
    return {"C": out, "C.scale": scale}


def _pair(rng: np.random.Generator, axes: Mapping[str, int], draw: Any) -> dict[str, Array]:
    return {"A": draw(rng, (axes["M"], axes["K"])), "B": draw(rng, (axes["N"], axes["K"]))}


def _positive(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    return _pair(rng, axes, lambda r, shape: rounded(r.random(shape, dtype=np.float32) + np.float32(0.5)))


def _scaled(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    return _pair(rng, axes, lambda r, shape: rounded(r.standard_normal(shape, dtype=np.float32) * row_scales(r, shape[0])))


def _special(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    a = sprinkle(rng, normal(rng, (axes["M"], axes["K"])), (np.nan, np.inf, -np.inf), 1e-5)
    return {"A": a, "B": normal(rng, (axes["N"], axes["K"]))}


TASK = Task(
    name="gemm",
    doc="C = A @ B.T for bf16 matrices A[M,K] and B[N,K]; C[M,N] is bf16, sums are f32",
    axes=("M", "N", "K"),
    tensors={
        "A": Tensor(("M", "K"), "bf16", widens=True),
        "B": Tensor(("N", "K"), "bf16", widens=True, doc="one row a column of C, so K is contiguous in both operands"),
        "C": Tensor(("M", "N"), "bf16", "out"),
    },
    scalars={"M": Scalar("i32", "M"), "N": Scalar("i32", "N"), "K": Scalar("i32", "K")},
    shapes=(
        Shape("sim_ragged", {"M": 300, "N": 200, "K": 256}, "sim"),
        Shape("sim_tails", {"M": 200, "N": 136, "K": 200}, "sim"),
        Shape("sim_one_tile", {"M": 128, "N": 256, "K": 64}, "sim"),
        Shape("square_1024", {"M": 1024, "N": 1024, "K": 1024}),
        Shape("wide_2048", {"M": 512, "N": 2048, "K": 1536}),
        Shape("edge_thin", {"M": 1, "N": 8, "K": 8}, "edge"),
        Shape("edge_ragged", {"M": 129, "N": 264, "K": 72}, "edge"),
        Shape("edge_long_k", {"M": 130, "N": 248, "K": 4104}, "edge"),
        Shape("edge_no_rows", {"M": 0, "N": 264, "K": 128}, "edge"),
        Shape("square_4096", {"M": 4096, "N": 4096, "K": 4096}, "bench"),
        Shape("square_8192", {"M": 8192, "N": 8192, "K": 8192}, "bench"),
        Shape("m2048_n4096_k4096", {"M": 2048, "N": 4096, "K": 4096}, "bench"),
        *(Shape(f"m{m}_n{n}_k{k}", {"M": m, "N": n, "K": k}, "bench") for m in (256, 4096) for n, k in LLM),
    ),
    distributions=(
        Distribution("normal", lambda rng, axes: _pair(rng, axes, normal), doc="standard normal"),
        Distribution("positive", _positive, doc="0.5 to 1.5: sums grow with K, so a short accumulator shows"),
        Distribution("scaled", _scaled, doc="each row of A and of B has its own power of two, 2^-12 to 2^12"),
        Distribution(
            "integers", lambda rng, axes: _pair(rng, axes, small_integers), exact=True, doc="-3 to 3: the f32 sums are exact"
        ),
        Distribution("special", _special, doc="a few NaN and infinite elements in A: non-finite results must match in place"),
    ),
    tolerances={
        "C": Tolerance(
            rtol=5e-3,
            scaled=5e-4,
            reason="rounding to bf16 costs up to 2^-8 of the value; f32 sums over K <= 28672 are off by less than 5e-4 of "
            "|a| |b| / sqrt(K), sums kept in bf16 by more than 1e-2",
        )
    },
    oracle=oracle,
    domain={"M": AxisDomain(1, 2100), "N": AxisDomain(8, 2048, 8), "K": AxisDomain(8, 2048, 8)},
    flops="2 * M * N * K",
    peers=(
        Peer("cuBLAS", "peers:cublas_tn", "torch.matmul on the transposed view"),
        Peer("hand-written", "peers:hand_gemm", "CUDA C++ with inline PTX, where a folder with it is given"),
    ),
)

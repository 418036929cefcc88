"""C = (A SA) @ (B SB).T for e4m3 operands with one f32 scale for 1 x 128 blocks of A and for 128 x 128 blocks of B; C is bf16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import AxisDomain, Distribution, Peer, Scalar, Shape, Task, Tensor, Tolerance
from cake_kernels.draws import rounded, small_integers, sprinkle

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]
    Rng = np.random.Generator

BLOCK = 128
CHUNK = 2**25  # float64 elements of B held at a time (256 MiB)


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """The product of the dequantised matrices in float64, B taken in chunks of rows.

    Its scale is the root of the sum over blocks of |a_b|^2 |b_b|^2 / 128: the size of a sum of random signs, also where one block
    outweighs the others.
    """
    m, n, k = axes["M"], axes["N"], axes["K"]
    rows = np.arange(m) if rows is None else rows
    a = inputs["A"][rows].astype(np.float64).reshape(len(rows), k // BLOCK, BLOCK)
    a *= inputs["SA"].T[rows, :, None]
    length_a = np.square(a).sum(2)
    a = a.reshape(len(rows), k)
    out, scale = np.empty((len(rows), n)), np.empty((len(rows), n))
    step = max(1, CHUNK // k)
    with np.errstate(invalid="ignore"):
        for first in range(0, n, step):
            b = inputs["B"][first : first + step].astype(np.float64).reshape(-1, k // BLOCK, BLOCK)
            b *= inputs["SB"].reshape(-1, k // BLOCK)[np.arange(first, first + len(b)) // BLOCK][:, :, None]
            scale[:, first : first + step] = np.sqrt(length_a @ np.square(b).sum(2).T / BLOCK)
            out[:, first : first + step] = a @ b.reshape(-1, k).T
    return {"C": out, "C.scale": scale}


def _extents(axes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    blocks = axes["K"] // BLOCK
    return {
        "A": (axes["M"], axes["K"]), "B": (axes["N"], axes["K"]),
        "SA": (blocks, (axes["M"] + 3) // 4 * 4), "SB": ((axes["N"] + BLOCK - 1) // BLOCK * blocks,),
    }  # fmt: skip


def _made(rng: Rng, axes: Mapping[str, int], values: Any, scales: Any) -> dict[str, Array]:
    """Both operands by `values`, both scales by `scales`."""
    return {name: (scales if name[0] == "S" else values)(rng, shape) for name, shape in _extents(axes).items()}


def _values(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rounded(rng.standard_normal(shape, dtype=np.float32) * np.float32(64), "e4m3")


def _amax_scales(rng: Rng, shape: tuple[int, ...]) -> Array:
    """What quantising leaves: the largest of 128 normal values over 448."""
    return (rng.random(shape, dtype=np.float32) + np.float32(2)) / np.float32(448)


def _power_scales(low: int, high: int) -> Any:
    return lambda rng, shape: np.exp2(rng.integers(low, high + 1, shape).astype(np.float32))


def _special(rng: Rng, axes: Mapping[str, int]) -> dict[str, Array]:
    made = _made(rng, axes, _values, _amax_scales)
    return {**made, "A": sprinkle(rng, made["A"], (np.nan,), 1e-5)}


LLM = tuple((n, k) for n, k in ((2112, 7168), (24576, 1536), (7168, 16384), (4096, 7168), (7168, 2048)))
TASK = Task(
    name="gemm_fp8",
    doc="C[M,N] = sum over blocks b of 128 along K of SA[b,m] * SB[n/128,b] * (A[m,b] . B[n,b]): W8A8 with e4m3 values, bf16 out",
    axes=("M", "N", "K"),
    tensors={
        "A": Tensor(("M", "K"), "e4m3"),
        "B": Tensor(("N", "K"), "e4m3", doc="one row a column of C"),
        "SA": Tensor(("K // 128", "(M + 3) // 4 * 4"), "f32", doc="scales of A, a row for each block of K, rows padded to 16 bytes"),
        "SB": Tensor(("(N + 127) // 128 * (K // 128)",), "f32", doc="scales of B, one for each block of 128 x 128, those of one row of blocks together"),
        "C": Tensor(("M", "N"), "bf16", "out"),
    },
    scalars={
        "M": Scalar("i32", "M"), "N": Scalar("i32", "N"), "K": Scalar("i32", "K"),
        "KB": Scalar("i32", "K // 128"), "NB": Scalar("i32", "(N + 127) // 128"), "MP": Scalar("i32", "(M + 3) // 4 * 4"),
    },
    shapes=(
        Shape("sim_ragged", {"M": 130, "N": 200, "K": 384}, "sim"),
        Shape("sim_tails", {"M": 70, "N": 136, "K": 640}, "sim"),
        Shape("sim_one_tile", {"M": 64, "N": 128, "K": 128}, "sim"),
        Shape("sim_fours", {"M": 150, "N": 200, "K": 512}, "sim"),  # the blocks along K come in fours
        Shape("sim_eights", {"M": 70, "N": 264, "K": 1024}, "sim"),
        Shape("square_1024", {"M": 1024, "N": 1024, "K": 1024}),
        Shape("decode_64", {"M": 64, "N": 2112, "K": 1536}),
        Shape("edge_thin", {"M": 1, "N": 8, "K": 128}, "edge"),
        Shape("edge_ragged", {"M": 129, "N": 264, "K": 256}, "edge"),
        Shape("edge_long_k", {"M": 67, "N": 312, "K": 4224}, "edge"),
        Shape("edge_no_rows", {"M": 0, "N": 264, "K": 1024}, "edge"),
        *(Shape(f"m{m}_n{n}_k{k}", {"M": m, "N": n, "K": k}, "bench") for m in (64, 256, 4096) for n, k in LLM),
        Shape("square_4096", {"M": 4096, "N": 4096, "K": 4096}, "bench"),
        Shape("square_8192", {"M": 8192, "N": 8192, "K": 8192}, "bench"),
    ),
    distributions=(
        Distribution("normal", lambda rng, axes: _made(rng, axes, _values, _amax_scales), doc="as quantised from normal data"),
        Distribution(
            "positive", lambda rng, axes: _made(rng, axes, lambda r, s: rounded(r.random(s, dtype=np.float32) + np.float32(0.5), "e4m3"), _amax_scales),
            doc="0.5 to 1.5: sums grow with K, so a short accumulator shows",
        ),
        Distribution("blocks", lambda rng, axes: _made(rng, axes, _values, _power_scales(-10, 10)), doc="each block has its own power of two as scale"),
        Distribution(
            "integers", lambda rng, axes: _made(rng, axes, lambda r, s: small_integers(r, s, dtype="e4m3"), _power_scales(-1, 1)),
            doc="-3 to 3 with scales of 1/2, 1 and 2: all sums are exact, in the tensor core too",
        ),
        Distribution("special", _special, doc="a few NaN in A: the rows that hold them are NaN"),
    ),
    tolerances={
        "C": Tolerance(
            rtol=6e-3,
            scaled=4e-3,
            reason="rounding to bf16 costs up to 2^-8 of the value; the tensor core cuts addends 13 bits below the largest of an instruction, "
            "four times in a block of 128, which over 64 blocks may add up to 3e-3 of the scale; sums that stay there over all of K lose "
            "more than 1e-2",
        )
    },
    oracle=oracle,
    domain={"M": AxisDomain(1, 700), "N": AxisDomain(8, 2048, 8), "K": AxisDomain(128, 4096, 128)},
    flops="2 * M * N * K",
    unit="e4m3",
    peers=(
        Peer("DeepGEMM", "peers:deep_gemm_fp8", "fp8_gemm_nt with the same blocks"),
        Peer("torch._scaled_mm", "peers:scaled_mm", "cuBLASLt, with the same blocks, and with one scale a row"),
    ),
)

"""r = bf16(x + r) in place, then y = r * rsqrt(mean(r^2) + eps) * w, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import AxisDomain, Distribution, Peer, Scalar, Shape, Task, Tensor, Tolerance
from cake_kernels.draws import normal, rounded, row_scales, sprinkle

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

EPS = 1e-6
CHUNK = 2**24  # elements of a row block held in float64 at a time


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """Both results in float64. The sum is rounded to bf16 before it is normalised: that is what the next layer reads."""
    x, r = (inputs[n] if rows is None else inputs[n][rows] for n in "XR")
    w = inputs["W"].astype(np.float64)
    total, out = np.empty(x.shape), np.empty(x.shape)
    step = max(1, CHUNK // axes["D"])
    with np.errstate(invalid="ignore", over="ignore"):
        for i in range(0, len(x), step):
            part = slice(i, i + step)
            # the sum of two bf16 values is rounded once to f32 and once to bf16, as in the kernel
            total[part] = (x[part].astype(np.float32) + r[part].astype(np.float32)).astype(x.dtype)
            mean = (total[part] * total[part]).mean(axis=1, keepdims=True)
            out[part] = total[part] / np.sqrt(mean + float(np.float32(EPS))) * w
    return {"R": total, "Y": out}


def _with_weights(rng: np.random.Generator, axes: Mapping[str, int], x: Array, r: Array) -> dict[str, Array]:
    return {"X": x, "R": r, "W": rounded(rng.standard_normal(axes["D"], dtype=np.float32) * np.float32(0.5) + np.float32(1))}


def _normal(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    shape = (axes["ROWS"], axes["D"])
    return _with_weights(rng, axes, normal(rng, shape), normal(rng, shape))


def _scaled(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    shape = (axes["ROWS"], axes["D"])
    scale = row_scales(rng, axes["ROWS"], -20, 20)
    x, r = (rounded(rng.standard_normal(shape, dtype=np.float32) * scale) for _ in range(2))
    return _with_weights(rng, axes, x, r)


def _large_residual(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    shape = (axes["ROWS"], axes["D"])
    return _with_weights(rng, axes, normal(rng, shape), rounded(rng.standard_normal(shape, dtype=np.float32) * np.float32(64)))


def _special(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    made = _normal(rng, axes)
    middle = slice(axes["ROWS"] // 2, axes["ROWS"] // 2 + 1)
    made["X"][middle] = -made["R"][middle]
    return made | {"X": sprinkle(rng, made["X"], (np.nan,), 1e-6)}


TASK = Task(
    name="add_rmsnorm",
    doc="r = bf16(x + r) in place and y = r / sqrt(mean(r^2) + eps) * w for each row of X[ROWS,D] and R[ROWS,D], bf16, f32 inside",
    axes=("ROWS", "D"),
    tensors={
        "X": Tensor(("ROWS", "D"), "bf16"),
        "R": Tensor(("ROWS", "D"), "bf16", "inout", doc="the residual stream: read, and the sum left in it"),
        "W": Tensor(("D",), "bf16"),
        "Y": Tensor(("ROWS", "D"), "bf16", "out"),
    },
    scalars={"ROWS": Scalar("i32", "ROWS"), "eps": Scalar("f32", EPS)},
    shapes=(
        Shape("sim_9x2048", {"ROWS": 9, "D": 2048}, "sim"),
        Shape("sim_5x4096", {"ROWS": 5, "D": 4096}, "sim"),
        Shape("sim_4x7168", {"ROWS": 4, "D": 7168}, "sim"),
        Shape("sim_4x8192", {"ROWS": 4, "D": 8192}, "sim"),
        Shape("rows_2000x4096", {"ROWS": 2000, "D": 4096}),
        Shape("rows_777x7168", {"ROWS": 777, "D": 7168}),
        Shape("rows_1500x2048", {"ROWS": 1500, "D": 2048}),
        Shape("rows_1500x8192", {"ROWS": 1500, "D": 8192}),
        Shape("edge_one_row", {"ROWS": 1, "D": 4096}, "edge"),
        Shape("edge_133_rows", {"ROWS": 133, "D": 4096}, "edge"),
        Shape("edge_no_rows", {"ROWS": 0, "D": 4096}, "edge"),
        Shape("bench_16384x7168", {"ROWS": 16384, "D": 7168}, "bench"),
        Shape("bench_16384x4096", {"ROWS": 16384, "D": 4096}, "bench"),
        Shape("bench_65536x2048", {"ROWS": 65536, "D": 2048}, "bench"),
        Shape("bench_4096x8192", {"ROWS": 4096, "D": 8192}, "bench"),
    ),
    distributions=(
        Distribution("normal", _normal, doc="standard normal"),
        Distribution("scaled", _scaled, doc="each row has its own power of two, 2^-20 to 2^20: eps matters in the small ones"),
        Distribution("large_residual", _large_residual, doc="a residual 64 times larger than what is added"),
        Distribution("special", _special, doc="a row whose sum is zero, and rows with a NaN, whose norm is NaN"),
    ),
    tolerances={
        "R": Tolerance(compare="exact", reason="the sum of two bf16 values in f32, rounded to nearest even once more to bf16, is the same everywhere"),
        "Y": Tolerance(
            rtol=5e-3,
            scaled=1e-4,
            reason="one rounding to bf16 costs up to 2^-8 of the value; the f32 sum of squares and an approximate rsqrt add "
            "less than 1e-6",
        ),
    },
    oracle=oracle,
    domain={"ROWS": AxisDomain(1, 3000), "D": AxisDomain(1024, 8192, 1024)},
    flops="5 * ROWS * D",
    unit="f32",
    peers=(
        Peer("torch.compile", "peers:torch_compile_add_rmsnorm", "inductor, static shapes, residual updated in place"),
        Peer("Liger", "peers:liger_add_rmsnorm", "liger-kernel's fused kernel, which writes a new residual"),
    ),
)

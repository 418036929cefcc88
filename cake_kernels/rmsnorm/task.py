"""y = x * rsqrt(mean(x^2) + eps) * w, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import AxisDomain, Distribution, Peer, Scalar, Shape, Task, Tensor, Tolerance
from cake_kernels.draws import normal, rounded, row_scales, sprinkle

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

EPS = 1e-6
CHUNK = 2**24  # elements of X held in float64 at a time


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """The normalised rows in float64; eps is the f32 value that the kernel is given."""
    x = inputs["X"] if rows is None else inputs["X"][rows]
    w = inputs["W"].astype(np.float64)
    out = np.empty(x.shape)
    step = max(1, CHUNK // axes["D"])
    with np.errstate(invalid="ignore"):
        for r in range(0, len(x), step):
            part = x[r : r + step].astype(np.float64)
            mean = (part * part).mean(axis=1, keepdims=True)
            out[r : r + step] = part / np.sqrt(mean + float(np.float32(EPS))) * w
    return {"Y": out}


def _with_weights(rng: np.random.Generator, axes: Mapping[str, int], x: Array) -> dict[str, Array]:
    return {"X": x, "W": rounded(rng.standard_normal(axes["D"], dtype=np.float32) * np.float32(0.5) + np.float32(1))}


def _normal(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    return _with_weights(rng, axes, normal(rng, (axes["ROWS"], axes["D"])))


def _scaled(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = rng.standard_normal((axes["ROWS"], axes["D"]), dtype=np.float32) * row_scales(rng, axes["ROWS"], -20, 20)
    return _with_weights(rng, axes, rounded(x))


def _outliers(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = normal(rng, (axes["ROWS"], axes["D"]))
    x[np.arange(axes["ROWS"]), rng.integers(0, axes["D"], axes["ROWS"])] *= np.float32(1000)
    return _with_weights(rng, axes, x)


def _special(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = sprinkle(rng, normal(rng, (axes["ROWS"], axes["D"])), (np.nan,), 1e-6)
    x[axes["ROWS"] // 2 : axes["ROWS"] // 2 + 1] = 0
    return _with_weights(rng, axes, x)


TASK = Task(
    name="rmsnorm",
    doc="y = x / sqrt(mean(x^2) + eps) * w for each row of X[ROWS,D], bf16 in and out, f32 inside",
    axes=("ROWS", "D"),
    tensors={
        "X": Tensor(("ROWS", "D"), "bf16"),
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
        Distribution("outliers", _outliers, doc="one element a row is 1000 times larger and decides the norm"),
        Distribution("special", _special, doc="a zero row, and rows with a NaN, which become NaN as a whole"),
    ),
    tolerances={
        "Y": Tolerance(
            rtol=5e-3,
            scaled=1e-4,
            reason="one rounding to bf16 costs up to 2^-8 of the value; the f32 sum of squares and an approximate rsqrt add "
            "less than 1e-6",
        )
    },
    oracle=oracle,
    domain={"ROWS": AxisDomain(1, 3000), "D": AxisDomain(1024, 8192, 1024)},
    flops="4 * ROWS * D",
    unit="f32",
    peers=(
        Peer("torch.compile", "peers:torch_compile_rmsnorm", "inductor, static shapes"),
        Peer("F.rms_norm", "peers:torch_rmsnorm", "PyTorch's own kernel"),
    ),
)

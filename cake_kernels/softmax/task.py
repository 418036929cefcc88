"""y = softmax(x) along rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import AxisDomain, Distribution, Peer, Scalar, Shape, Task, Tensor, Tolerance
from cake_kernels.draws import normal, rounded, row_scales

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

CHUNK = 2**24  # elements of X held in float64 at a time


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """The softmax of each row in float64."""
    x = inputs["X"] if rows is None else inputs["X"][rows]
    out = np.empty(x.shape)
    step = max(1, CHUNK // axes["N"])
    with np.errstate(invalid="ignore", over="ignore"):
        for r in range(0, len(x), step):
            part = x[r : r + step].astype(np.float64)
            p = np.exp(part - part.max(axis=1, keepdims=True))
            out[r : r + step] = p / p.sum(axis=1, keepdims=True)
    return {"Y": out}


def _normal(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    return {"X": normal(rng, (axes["ROWS"], axes["N"]))}


def _peaked(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = rng.standard_normal((axes["ROWS"], axes["N"]), dtype=np.float32)
    return {"X": rounded(x * row_scales(rng, axes["ROWS"], -6, 5))}


def _shifted(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = rng.standard_normal((axes["ROWS"], axes["N"]), dtype=np.float32)
    return {"X": rounded(x + rng.integers(-200, 201, (axes["ROWS"], 1)).astype(np.float32))}


def _rising(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = rng.standard_normal((axes["ROWS"], axes["N"]), dtype=np.float32)
    return {"X": rounded(x + np.linspace(-8, 8, axes["N"], dtype=np.float32))}


def _masked(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = normal(rng, (axes["ROWS"], axes["N"]))
    kept = rng.integers(1, axes["N"] + 1, axes["ROWS"])
    x[np.arange(axes["N"]) >= kept[:, None]] = -np.inf
    x[axes["ROWS"] // 2 : axes["ROWS"] // 2 + 1, 0] = np.nan
    return {"X": x}


TASK = Task(
    name="softmax",
    doc="y = exp(x - max(x)) / sum(exp(x - max(x))) for each row of X[ROWS,N], bf16 in and out, f32 inside",
    axes=("ROWS", "N"),
    tensors={"X": Tensor(("ROWS", "N"), "bf16"), "Y": Tensor(("ROWS", "N"), "bf16", "out")},
    scalars={"ROWS": Scalar("i32", "ROWS")},
    shapes=(
        Shape("sim_6x4096", {"ROWS": 6, "N": 4096}, "sim"),
        Shape("sim_5x32768", {"ROWS": 5, "N": 32768}, "sim"),
        Shape("sim_4x131072", {"ROWS": 4, "N": 131072}, "sim"),
        Shape("rows_1111x4096", {"ROWS": 1111, "N": 4096}),
        Shape("rows_300x32768", {"ROWS": 300, "N": 32768}),
        Shape("rows_140x131072", {"ROWS": 140, "N": 131072}),
        Shape("edge_one_row", {"ROWS": 1, "N": 4096}, "edge"),
        Shape("edge_one_long_row", {"ROWS": 1, "N": 32768}, "edge"),
        Shape("edge_one_longest_row", {"ROWS": 1, "N": 131072}, "edge"),
        *(Shape(f"edge_no_rows_{n}", {"ROWS": 0, "N": n}, "edge") for n in (4096, 131072)),
        Shape("bench_16384x4096", {"ROWS": 16384, "N": 4096}, "bench"),
        Shape("bench_8192x32768", {"ROWS": 8192, "N": 32768}, "bench"),
        Shape("bench_128x131072", {"ROWS": 128, "N": 131072}, "bench"),
    ),
    distributions=(
        Distribution("normal", _normal, doc="standard normal"),
        Distribution("peaked", _peaked, doc="each row scaled by 2^-6 to 2^5: from uniform to a single element"),
        Distribution("shifted", _shifted, doc="each row has its own offset of -200 to 200: without the maximum, exp overflows or vanishes"),
        Distribution("rising", _rising, doc="elements grow along the row: a running maximum changes to the end"),
        Distribution("masked", _masked, doc="rows end in -inf from somewhere on, and one row has a NaN and becomes NaN"),
    ),
    tolerances={
        "Y": Tolerance(
            rtol=5e-3,
            atol=1e-9,
            scaled=1e-5,
            reason="one rounding to bf16 costs up to 2^-8 of the value; exp2 of a rounded product is off by up to 2^-15 of it for "
            "arguments to 300, f32 sums by less than 1e-5; below 1e-9 results are flushed or subnormal",
        )
    },
    oracle=oracle,
    domain={"ROWS": AxisDomain(1, 700), "N": AxisDomain(4096, 32768, 4096)},
    flops="5 * ROWS * N",
    unit="f32",
    peers=(
        Peer("torch.softmax", "peers:torch_softmax", "PyTorch's own kernel"),
        Peer("torch.compile", "peers:torch_compile_softmax", "inductor, static shapes"),
        Peer("Liger", "peers:liger_softmax", "liger-kernel's Triton kernel"),
    ),
)

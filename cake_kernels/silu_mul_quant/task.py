"""v = silu(gate) * up, quantised to e4m3 with one f32 scale for each 128 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import AxisDomain, Distribution, Peer, Scalar, Shape, Task, Tensor, Tolerance
from cake_kernels.draws import normal, rounded, row_scales

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

GROUP = 128
LEAST, LARGEST = 1e-4, 448.0  # the smallest amax that a scale is made of; the largest e4m3 number
CHUNK = 2**23  # elements of one half of X held in float64 at a time


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """Scales and scaled values in float64, not rounded to e4m3: a right answer is within half a step of them."""
    x = inputs["X"] if rows is None else inputs["X"][rows]
    m, n = len(x), axes["N"]
    q, scale = np.empty((m, n)), np.empty((m, n // GROUP))
    step = max(1, CHUNK // max(1, n))
    with np.errstate(over="ignore"):
        for i in range(0, m, step):
            gate, up = (x[i : i + step, half].astype(np.float64) for half in (0, 1))
            v = (gate / (1 + np.exp(-gate)) * up).reshape(len(gate), -1, GROUP)
            scale[i : i + step] = np.maximum(np.abs(v).max(axis=2), LEAST) / LARGEST
            q[i : i + step] = (v / scale[i : i + step, :, None]).reshape(len(gate), n)
    return {"Q": q, "SCALE": scale}


def _normal(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    return {"X": normal(rng, (axes["M"], 2, axes["N"]))}


def _scaled(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = rng.standard_normal((axes["M"], 2, axes["N"]), dtype=np.float32)
    return {"X": rounded(x * row_scales(rng, axes["M"], -10, 6)[:, :, None])}


def _outliers(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = normal(rng, (axes["M"], 2, axes["N"]))
    first = np.arange(0, axes["N"], GROUP)
    at = first + rng.integers(0, GROUP, (axes["M"], len(first)))
    x[np.arange(axes["M"])[:, None], 1, at] *= np.float32(300)
    return {"X": x}


def _zeros(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x = normal(rng, (axes["M"], 2, axes["N"]))
    x[:, 1, :GROUP] = 0
    x[axes["M"] // 2 : axes["M"] // 2 + 1] = 0
    return {"X": x}


TASK = Task(
    name="silu_mul_quant",
    doc="v = silu(X[:,0]) * X[:,1] for X[M,2,N] in bf16; SCALE[M,N/128] = max(max |v|, 1e-4) / 448 over 128 columns, "
    "Q[M,N] = v / SCALE in e4m3",
    axes=("M", "N"),
    tensors={
        "X": Tensor(("M", 2, "N"), "bf16", doc="a row's gate and then its projection: the output of one GEMM"),
        "Q": Tensor(("M", "N"), "e4m3", "out"),
        "SCALE": Tensor(("M", "N // 128"), "f32", "out"),
    },
    scalars={"M": Scalar("i32", "M"), "N": Scalar("i32", "N"), "G": Scalar("i32", "N // 128")},
    shapes=(
        Shape("sim_70x1024", {"M": 70, "N": 1024}, "sim"),
        Shape("sim_33x640", {"M": 33, "N": 640}, "sim"),
        Shape("rows_1000x2048", {"M": 1000, "N": 2048}),
        Shape("rows_333x14336", {"M": 333, "N": 14336}),
        Shape("edge_one_row", {"M": 1, "N": 128}, "edge"),
        Shape("edge_129x384", {"M": 129, "N": 384}, "edge"),
        Shape("edge_no_rows", {"M": 0, "N": 1024}, "edge"),
        Shape("bench_8192x14336", {"M": 8192, "N": 14336}, "bench"),
        Shape("bench_16384x2048", {"M": 16384, "N": 2048}, "bench"),
        Shape("bench_64x14336", {"M": 64, "N": 14336}, "bench"),
    ),
    distributions=(
        Distribution("normal", _normal, doc="standard normal"),
        Distribution("scaled", _scaled, doc="each row has its own power of two, 2^-10 to 2^6: the least scale is met, silu saturates"),
        Distribution("outliers", _outliers, doc="one projection a group is 300 times larger and decides its scale"),
        Distribution("zeros", _zeros, doc="a zero row and a zero group in every row: the scale is that of 1e-4"),
    ),
    tolerances={
        "Q": Tolerance(
            rtol=0.068,
            atol=1.1e-3,
            reason="half a step of e4m3 is 2^-4 of the value, 2^-10 where it is subnormal; rounding v to bf16 first, which is allowed, "
            "moves v and the scale by 2^-9 each",
        ),
        "SCALE": Tolerance(
            rtol=4.2e-3,
            reason="rounding v to bf16 before its maximum is taken, which is allowed, costs up to 2^-8; exp2 and rcp add less than 1e-5",
        ),
    },
    oracle=oracle,
    domain={"M": AxisDomain(1, 700), "N": AxisDomain(128, 4096, 128)},
    flops="8 * M * N",
    unit="f32",
    peers=(Peer("torch.compile", "peers:torch_compile_silu_mul_quant", "inductor, static shapes"),),
)

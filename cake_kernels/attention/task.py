"""O = softmax(Q K^T / sqrt(D)) V for each batch and head, with or without a causal mask; heads of K and V may be shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import AxisDomain, Distribution, Peer, Scalar, Shape, Task, Tensor, Tolerance
from cake_kernels.draws import normal, rounded, row_scales, sprinkle

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

LOG2_E = 1.4426950408889634
CHUNK = 2**24  # scores held in float64 at a time (128 MiB)


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """The attention rows in float64. Their scale is the root of sum p_j^2 v_j^2: what one rounding error a weight adds up to."""
    heads, seq, dim = axes["HK"] * axes["G"], axes["S"], axes["D"]
    numbers = np.arange(axes["B"] * heads * seq) if rows is None else np.asarray(rows)
    q = inputs["Q"].reshape(-1, dim)
    out, scale = np.empty((len(numbers), dim)), np.empty((len(numbers), dim))
    step = max(1, CHUNK // seq)
    for head in np.unique(numbers // seq):
        b, h = divmod(int(head), heads)
        k, v = (inputs[n][b, h // axes["G"]].astype(np.float64) for n in "KV")
        mine = np.flatnonzero(numbers // seq == head)
        for at in range(0, len(mine), step):
            chosen = mine[at : at + step]
            with np.errstate(invalid="ignore", over="ignore"):
                p = _weights(q[numbers[chosen]].astype(np.float64) @ k.T / np.sqrt(dim), numbers[chosen] % seq, axes)
                out[chosen] = p @ v
                scale[chosen] = np.sqrt((p * p) @ (v * v))
    return {"O": out, "O.scale": scale}


def _weights(scores: Array, position: Array, axes: Mapping[str, int]) -> Array:
    """Softmax of score rows; `position` is each query's place in its sequence."""
    if axes["CAUSAL"]:
        scores = np.where(np.arange(axes["S"]) <= position[:, None], scores, -np.inf)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _shape(axes: Mapping[str, int], heads: int) -> tuple[int, int, int, int]:
    return axes["B"], heads, axes["S"], axes["D"]


def _normal(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    kv = _shape(axes, axes["HK"])
    return {"Q": normal(rng, _shape(axes, axes["HK"] * axes["G"])), "K": normal(rng, kv), "V": normal(rng, kv)}


def _peaked(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    made = _normal(rng, axes)
    q = made["Q"].astype(np.float32).reshape(-1, axes["D"])
    return made | {"Q": rounded(q * row_scales(rng, len(q), -6, 4)).reshape(made["Q"].shape)}


def _rising(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    made = _normal(rng, axes)
    q, k = made["Q"].astype(np.float32), made["K"].astype(np.float32)
    q[..., 0], k[..., 0] = 4, np.linspace(8, -8, axes["S"], dtype=np.float32)  # scores fall by up to 6 from the first key to the last
    return made | {"Q": rounded(q), "K": rounded(k)}


def _offset(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    made = _normal(rng, axes)
    return made | {"V": rounded(made["V"].astype(np.float32) * np.float32(0.25) + np.float32(4))}


def _special(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    made = _normal(rng, axes)
    made["Q"][:, :, axes["S"] // 2] = 0
    return made | {"Q": sprinkle(rng, made["Q"], (np.nan,), 1e-5)}


def _axes(b: int, hk: int, g: int, s: int, d: int, causal: int) -> dict[str, int]:
    return {"B": b, "HK": hk, "G": g, "S": s, "D": d, "CAUSAL": causal}


def _both(name: str, kind: str, b: int, hk: int, g: int, s: int) -> tuple[Shape, ...]:
    """The shape for both head sizes, full and causal."""
    return tuple(
        Shape(f"{name}_d{d}{'_causal' if causal else ''}", _axes(b, hk, g, s, d, causal), kind) for d in (128, 64) for causal in (0, 1)
    )


TASK = Task(
    name="attention",
    doc="O = softmax(Q K^T / sqrt(D)) V for Q[B,H,S,D] and K, V[B,HK,S,D] in bf16, H = HK G: query head h uses key head h / G. "
    "With CAUSAL = 1 a query sees the keys up to its own position. Sums and softmax are f32",
    axes=("B", "HK", "G", "S", "D", "CAUSAL"),
    tensors={
        "Q": Tensor(("B", "HK * G", "S", "D"), "bf16"),
        "K": Tensor(("B", "HK", "S", "D"), "bf16"),
        "V": Tensor(("B", "HK", "S", "D"), "bf16"),
        "O": Tensor(("B", "HK * G", "S", "D"), "bf16", "out"),
    },
    scalars={
        "B": Scalar("i32", "B"),
        "H": Scalar("i32", "HK * G"),
        "HK": Scalar("i32", "HK"),
        "S": Scalar("i32", "S"),
        "scale_log2": Scalar("f32", f"{LOG2_E} / 8 if D == 64 else {LOG2_E} / 11.313708498984761", "log2(e) / sqrt(D)"),
    },
    shapes=(
        *_both("sim_200", "sim", 1, 2, 2, 200),
        *_both("mid_1024", "check", 2, 2, 2, 1024),
        *_both("mid_777", "check", 1, 3, 1, 777),
        *_both("edge_one", "edge", 1, 1, 1, 1),
        *_both("edge_129", "edge", 2, 1, 3, 129),
        *_both("edge_1000", "edge", 1, 2, 1, 1000),
        *_both("edge_no_batch", "edge", 0, 2, 1, 300),
        *(
            Shape(f"bench_{s}_d{d}{'_causal' if causal else ''}", _axes(16384 // s, h, 1, s, d, causal), "bench")
            for d, h in ((128, 16), (64, 32))
            for causal in (0, 1)
            for s in (512, 1024, 2048, 4096, 8192, 16384)
        ),
        *(Shape(f"bench_gqa_4096_d128{'_causal' if causal else ''}", _axes(4, 8, 4, 4096, 128, causal), "bench") for causal in (0, 1)),
    ),
    distributions=(
        Distribution("normal", _normal, doc="standard normal: weights of similar size"),
        Distribution("peaked", _peaked, doc="query rows scaled by 2^-6 to 2^4: from uniform weights to a single key"),
        Distribution("rising", _rising, doc="scores fall along the keys: blocks from the right meet a new maximum every time"),
        Distribution("offset", _offset, doc="values near 4: a sum that is not normalised, or a key too many, shows"),
        Distribution("special", _special, doc="a zero query a head, and queries with a NaN, whose rows become NaN"),
    ),
    tolerances={
        "O": Tolerance(
            rtol=1e-2,
            scaled=1.2e-2,
            atol=1e-6,
            reason="rounding O to bf16 costs up to 2^-9 of the value; rounding each weight to bf16 before P V up to 2^-9 of it, "
            "which adds up at random to less than 2^-9 of sqrt(sum p^2 v^2) times 4 to 5 sigma, and as a shared error of one "
            "dominant weight to 2^-9 of the value; f32 sums and exp2 add less than 1e-5",
        )
    },
    oracle=oracle,
    domain={
        "B": AxisDomain(1, 3), "HK": AxisDomain(1, 3), "G": AxisDomain(1, 4), "S": AxisDomain(1, 900), "D": AxisDomain(64, 128, 64),
        "CAUSAL": AxisDomain(0, 1),
    },
    row_dims=3,
    flops="4 * B * HK * G * S * S * D // (1 + CAUSAL)",
    peers=(
        Peer("FlashAttention-3", "peers:fa3", "the fa3-fwd wheel, tensors in its own (B, S, H, D) order"),
        Peer("cuDNN", "peers:sdpa_cudnn", "torch SDPA, cuDNN backend"),
        Peer("FlashAttention-2", "peers:sdpa_flash", "torch SDPA, flash backend"),
    ),
)

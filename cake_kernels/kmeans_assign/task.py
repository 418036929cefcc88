"""idx[b,i] = argmin_j |mu_j|^2 - 2 <x_i, mu_j>, and that minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import AxisDomain, Distribution, Peer, Scalar, Shape, Task, Tensor, Tolerance
from cake_kernels.draws import normal, rounded, small_integers, sprinkle

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]

CHUNK = 2**24  # scores held at a time (128 MiB of float64)


def scores(x: Array, mu: Array, mu_sq: Array) -> Array:
    """Float64 scores of points (n, D) against centroids (k, D); a NaN becomes +inf, because it never wins."""
    with np.errstate(invalid="ignore", over="ignore"):
        s = mu_sq.astype(np.float64)[None] - 2.0 * (x.astype(np.float64) @ mu.astype(np.float64).T)
    return np.where(np.isnan(s), np.inf, s)


def _by_batch(axes: Mapping[str, int], rows: Array | None) -> list[tuple[int, Array, Array]]:
    """(batch, points, places in the output) in pieces of bounded size."""
    flat = np.arange(axes["NB"] * axes["NP"]) if rows is None else np.asarray(rows)
    batch = flat // axes["NP"]
    step = max(1, CHUNK // max(1, axes["NK"]))
    pieces = []
    for b in np.unique(batch):
        at = np.flatnonzero(batch == b)
        pieces += [(int(b), flat[at[i : i + step]] % axes["NP"], at[i : i + step]) for i in range(0, len(at), step)]
    return pieces


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """Lowest index of the smallest score, the score, and the magnitude that its rounding error goes with."""
    n = axes["NB"] * axes["NP"] if rows is None else len(rows)
    idx, best, scale = np.zeros(n, np.int64), np.empty(n), np.empty(n)
    for b, points, at in _by_batch(axes, rows):
        x, mu, sq = inputs["X"][b, points], inputs["MU"][b], inputs["MU_SQ"][b]
        s = scores(x, mu, sq)
        idx[at] = s.argmin(axis=1)  # the first of equal minima; 0 where nothing is below +inf
        best[at] = s[np.arange(len(at)), idx[at]]
        largest = float(np.abs(sq[np.isfinite(sq)].astype(np.float64)).max(initial=0.0))
        with np.errstate(invalid="ignore", over="ignore"):
            norm = np.sqrt((x.astype(np.float64) ** 2).sum(1))
        scale[at] = largest + 2 * np.nan_to_num(norm, nan=0.0) * np.sqrt(largest)
    return {"IDX": idx, "DIST": best, "DIST.scale": scale, "IDX.scale": scale}


def witness(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array, chosen: Array) -> Array:
    """The float64 score of each row's chosen centroid."""
    out = np.empty(len(rows))
    for b, points, at in _by_batch(axes, rows):
        x = inputs["X"][b, points].astype(np.float64)
        mu = inputs["MU"][b][chosen[at]].astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            s = inputs["MU_SQ"][b][chosen[at]].astype(np.float64) - 2.0 * (x * mu).sum(1)
        out[at] = np.where(np.isnan(s), np.inf, s)
    return out


def _finish(x: Array, mu: Array) -> dict[str, Array]:
    with np.errstate(invalid="ignore", over="ignore"):
        sq = (mu.astype(np.float64) ** 2).sum(-1).astype(np.float32)
    return {"X": x, "MU": mu, "MU_SQ": sq}


def _dims(axes: Mapping[str, int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    return (axes["NB"], axes["NP"], axes["D"]), (axes["NB"], axes["NK"], axes["D"])


def _normal(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x, mu = _dims(axes)
    return _finish(normal(rng, x), normal(rng, mu))


def _clusters(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x, mu = _dims(axes)
    centres = rng.standard_normal(mu, dtype=np.float32) * np.float32(4)
    own = rng.integers(0, axes["NK"], x[:2])
    points = np.take_along_axis(centres, own[..., None], axis=1) + rng.standard_normal(x, dtype=np.float32)
    return _finish(rounded(points), rounded(centres))


def _ties(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x, mu = _dims(axes)
    centres = normal(rng, mu)
    half = axes["NK"] // 2
    centres[:, axes["NK"] - half :] = centres[:, :half]
    return _finish(normal(rng, x), centres)


def _integers(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x, mu = _dims(axes)
    return _finish(small_integers(rng, x, 2), small_integers(rng, mu, 1))


def _special(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
    x, mu = _dims(axes)
    points = sprinkle(rng, normal(rng, x), (np.nan,), 1e-5)
    centres = sprinkle(rng, normal(rng, mu), (np.nan,), 2e-4)
    return _finish(points, centres)


TASK = Task(
    name="kmeans_assign",
    doc="index of the nearest centroid of every point (lowest index on ties, NaN never wins), and |mu|^2 - 2 <x, mu> there",
    axes=("NB", "NP", "NK", "D"),
    tensors={
        "X": Tensor(("NB", "NP", "D"), "bf16"),
        "MU": Tensor(("NB", "NK", "D"), "bf16"),
        "MU_SQ": Tensor(("NB", "NK"), "f32", doc="squared norms of the centroids, prepared by the caller"),
        "IDX": Tensor(("NB", "NP"), "i32", "out"),
        "DIST": Tensor(("NB", "NP"), "f32", "out", optional=True, doc="the score; |x|^2 is not in it"),
    },
    scalars={"NB": Scalar("i32", "NB"), "NP": Scalar("i32", "NP"), "NK": Scalar("i32", "NK")},
    shapes=(
        Shape("sim_ragged", {"NB": 2, "NP": 600, "NK": 300, "D": 128}, "sim"),
        Shape("sim_one_tile", {"NB": 1, "NP": 128, "NK": 256, "D": 128}, "sim"),
        Shape("sim_short", {"NB": 1, "NP": 200, "NK": 20, "D": 128}, "sim"),
        Shape("batched", {"NB": 3, "NP": 5000, "NK": 1024, "D": 128}),
        Shape("many_centroids", {"NB": 1, "NP": 4096, "NK": 4096, "D": 128}),
        Shape("edge_one_point", {"NB": 1, "NP": 1, "NK": 4, "D": 128}, "edge"),
        Shape("edge_ragged", {"NB": 2, "NP": 1025, "NK": 516, "D": 128}, "edge"),
        Shape("sim_d64", {"NB": 1, "NP": 300, "NK": 200, "D": 64}, "sim"),
        Shape("sim_d512", {"NB": 2, "NP": 130, "NK": 516, "D": 512}, "sim"),
        Shape("narrow", {"NB": 1, "NP": 20000, "NK": 256, "D": 64}),
        Shape("long", {"NB": 1, "NP": 5000, "NK": 1000, "D": 512}),
        Shape("edge_d64", {"NB": 2, "NP": 257, "NK": 4, "D": 64}, "edge"),
        Shape("edge_d512", {"NB": 1, "NP": 1, "NK": 260, "D": 512}, "edge"),
        Shape("edge_no_batch", {"NB": 0, "NP": 300, "NK": 20, "D": 128}, "edge"),
        Shape("edge_no_points", {"NB": 2, "NP": 0, "NK": 20, "D": 64}, "edge"),
        Shape("assign_2m", {"NB": 32, "NP": 65536, "NK": 1024, "D": 128}, "bench"),
        Shape("assign_2m_one", {"NB": 1, "NP": 2097152, "NK": 1024, "D": 128}, "bench"),
        Shape("assign_8k_b32", {"NB": 32, "NP": 8192, "NK": 256, "D": 128}, "bench"),
        Shape("assign_16k_centroids", {"NB": 1, "NP": 262144, "NK": 16384, "D": 128}, "bench"),
        Shape("assign_d64", {"NB": 1, "NP": 1048576, "NK": 256, "D": 64}, "bench"),
        Shape("assign_d512", {"NB": 1, "NP": 262144, "NK": 4096, "D": 512}, "bench"),
    ),
    distributions=(
        Distribution("normal", _normal, doc="standard normal points and centroids"),
        Distribution("clusters", _clusters, doc="points around centroids that lie apart"),
        Distribution("ties", _ties, exact=True, doc="the second half of the centroids repeats the first"),
        Distribution("integers", _integers, exact=True, doc="small integers: all scores exact, many ties"),
        Distribution("special", _special, doc="some NaN points and centroids: NaN never wins"),
    ),
    tolerances={
        "IDX": Tolerance(
            compare="argmin",
            scaled=2e-6,
            reason="two centroids whose float64 scores differ by less than the f32 rounding of D <= 512 products may swap; "
            "an exact tie goes to the lowest index",
        ),
        "DIST": Tolerance(
            rtol=1e-6,
            scaled=2e-6,
            reason="f32 sums of at most 512 products, in units of |mu|^2 + 2 |x| |mu| with the largest centroid",
        ),
    },
    oracle=oracle,
    witness={"IDX": witness},
    index_limit={"IDX": "NK"},
    row_dims=2,
    domain={
        "NB": AxisDomain(1, 3),
        "NP": AxisDomain(1, 3000),
        "NK": AxisDomain(4, 1500, 4),
        "D": AxisDomain(64, 512, 64),
    },
    flops="2 * NB * NP * NK * D",
    peers=(
        Peer("flash-kmeans 0.3.1", "peers:flash_kmeans", "Triton, as shipped"),
        Peer("flashlib 0.4.0", "peers:flashlib", "Triton, as shipped"),
        Peer("hand-written", "peers:hand_kmeans", "CUDA C++ with inline PTX, where a folder with it is given"),
    ),
)

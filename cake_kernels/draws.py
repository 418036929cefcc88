"""Random arrays that the families' generators share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import numpy_dtype

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
    Rng = np.random.Generator


def rounded(values: Array, dtype: str = "bf16") -> Array:
    """Values in an element type (round to nearest even)."""
    return values.astype(numpy_dtype(dtype))


def normal(rng: Rng, shape: tuple[int, ...], dtype: str = "bf16") -> Array:
    """Standard normal values."""
    return rounded(rng.standard_normal(shape, dtype=np.float32), dtype)


def small_integers(rng: Rng, shape: tuple[int, ...], limit: int = 3, dtype: str = "bf16") -> Array:
    """Integers from -limit to limit: products and sums of them are exact in f32 up to 2^24."""
    return rounded(rng.integers(-limit, limit + 1, shape).astype(np.float32), dtype)


def row_scales(rng: Rng, rows: int, low: int = -12, high: int = 12) -> Array:
    """Powers of two drawn log-uniformly, one a row: large and small rows side by side in one tile."""
    return np.exp2(rng.integers(low, high + 1, (rows, 1)).astype(np.float32))


def sprinkle(rng: Rng, array: Array, values: tuple[float, ...], share: float) -> Array:
    """The array with about `share` of its elements (at least one of each) replaced by special values."""
    flat = array.reshape(-1).copy()
    if flat.size:
        count = max(len(values), int(flat.size * share))
        at = rng.integers(0, flat.size, count)
        flat[at] = np.asarray(values, np.float32).astype(array.dtype)[np.arange(count) % len(values)]
    return flat.reshape(array.shape)

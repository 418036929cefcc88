"""Combining with global memory: one update an element, in the order in which they come."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site
from cake_backend.simulate.state import Warp
from cake_backend.simulate.tensors import Tensor

Combine = Callable[[Array, Array], Array]


def _wrap(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def combiner(op: str, dtype: str) -> Combine:
    """One update: (what is there, the operand) to what is there next, rounded to the element type."""
    f: Combine = {"add": np.add, "min": np.fmin, "max": np.fmax, "inc": _wrap, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
    if floats.is_float(dtype) and dtype != "f32":
        return lambda old, x: floats.rounded(f(old, x), dtype)
    return f


def apply(cells: Array, at: Array, value: Array, dtype: str, f: Combine) -> Array:
    """Update the raw elements `cells[at]` one after the other; the raw values left there."""
    value = value.astype(floats.compute_dtype(dtype), copy=False)
    unique = np.unique(at)
    if len(unique) == len(at):
        cells[at] = floats.encode(f(floats.decode(cells[at], dtype), value), dtype)
        return cells[at]
    for i in range(len(at)):  # elements that meet in one place
        one = at[i : i + 1]
        cells[one] = floats.encode(f(floats.decode(cells[one], dtype), value[i : i + 1]), dtype)
    return cells[unique]


def update(site: Site, warp: Warp, tensor: Tensor, at: tuple[Array, ...], value: Array, f: Combine) -> None:
    """Combine values with the elements at `at` (one index array an axis), watching for poison."""
    m = site.machine
    cells = tensor.raw.reshape(-1)
    flat = np.ravel_multi_index(tuple(np.ravel(a) for a in at), tensor.shape)
    left = apply(cells, flat, np.ravel(value), tensor.dtype, f)
    for i in {int(i) for i in flat} if m.flags else ():
        if (tensor.name, i) in m.flags:
            m.flags[tensor.name, i].wake()
    if m.notes and tensor.has_nan(left):
        first = m.notes[0]
        m.fault("X007", f"undefined data reaches `{tensor.name}`: {first[1]}", site.op, warp=warp, key=tensor.name, note=first)

"""Register fragments: the part of each that one warp holds, as a NumPy array.

The elements that a warp owns of a tile form are a grid, so they are kept as (its rows, its columns) and vectors broadcast against them.

=========================  =========================================================================================
fragment                   array
=========================  =========================================================================================
acc, a, b, rows            (rows, columns) the warp owns, both ascending
rowvec; partial sum        (rows, 1); (rows, 4), one a lane of the quad
rowvec of a vec            (32 lanes, runs a lane), one value a run
colvec                     (1, columns)
vec                        (32 lanes, registers); a ragged end repeats nothing and is marked by row -1
scalar; partial            (1, 1); (32, 1), one a lane
array of fragments         a list of the above, one a stage
pair                       a tuple of two row vectors
=========================  =========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cake_backend.simulate.faults import NotSimulated
from cake_backend.simulate.floats import Array
from cake_ir.forms import element_table, fragment_problem
from cake_ir.placement import fragment
from cake_ir.span import NOWHERE, Span
from cake_ir.types import FragT

TILES = ("acc", "a", "b", "rows")


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What one warp holds: rows and columns (fragment coordinates), broadcastable to the array's shape. `key` identifies the pattern."""

    key: tuple[FragT, int, int]
    rows: Array
    cols: Array
    shape: tuple[int, int]


def by_lane(t: FragT) -> bool:
    """Whether a warp's part is kept by lane and register instead of as a grid of rows and columns."""
    return t.form == "vec" or (t.form == "rowvec" and t.parent == "vec")


@lru_cache(maxsize=4096)
def held(t: FragT, warps: int, warp: int) -> Held:
    """The elements of a fragment that warp `warp` of a member of `warps` warps owns."""
    t = t.with_(partial=None, stages=1)
    key = (t, warps, warp)
    if t.form == "scalar":
        zero = np.zeros((1, 1), np.intp)
        return Held(key, zero, zero, (1, 1))
    f = fragment(t, warps)
    why = fragment_problem(f)
    if why:
        raise NotSimulated(f"this fragment ({why})")
    table = element_table(f)
    rows = np.frombuffer(table.rows, np.int32).reshape(table.shape)[warp].astype(np.intp)
    cols = np.frombuffer(table.cols, np.int32).reshape(table.shape)[warp].astype(np.intp)
    if by_lane(t):
        return Held(key, rows, cols, rows.shape)
    r, c = np.unique(rows), np.unique(cols)
    if len(np.unique(rows * (t.cols + 1) + cols)) != len(r) * len(c):
        raise NotSimulated(f"a fragment {t} that is not a grid in one warp")
    return Held(key, r[:, None], c[None, :], (len(r), len(c)))


def shape_of(t: FragT, warps: int, warp: int) -> tuple[int, int]:
    """Shape of the array that holds one stage of a finished fragment."""
    return held(t, warps, warp).shape


def regrid(x: Array, have: Held, rows: Array, cols: Array, what: str, span: Span = NOWHERE) -> Array:
    """The elements at (rows, cols) out of a warp's grid; `NotSimulated` where the warp does not hold them all."""
    source_rows, source_cols = have.rows[:, 0], have.cols[0, :]
    r, c = np.ravel(rows), np.ravel(cols)
    i, j = np.searchsorted(source_rows, r), np.searchsorted(source_cols, c)
    i, j = np.minimum(i, len(source_rows) - 1), np.minimum(j, len(source_cols) - 1)
    if (source_rows[i] != r).any() or (source_cols[j] != c).any():
        raise NotSimulated(f"{what}, which needs elements that other warps hold,", span)
    if len(i) == len(source_rows) and len(j) == len(source_cols):
        return x
    return x[np.ix_(i, j)]

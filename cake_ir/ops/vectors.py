"""Row vectors: one value for each row of a parent fragment, in the form that the parent's threads hold it."""

from __future__ import annotations

from cake_ir.dtypes import DTYPES
from cake_ir.types import FragT

LANES = (1, 2, 4, 8, 16, 32)
"""Runs of a `vec` that may make up a row: as many neighbouring lanes of one warp."""


def vec_chunk(dtype: str) -> int:
    """Elements of `dtype` in the 16 bytes that one thread moves at a time."""
    return max(1, 128 // max(8, DTYPES[dtype].bits))


NO_COLUMNS = "a `vec` is dealt in runs, and its threads keep no column vector"
"""Why `colvec` has no `vec` for a parent."""
COLUMNS_OF_VEC = "load what belongs to the columns as a `vec` of the same length, one row a member, or take the tile in form `acc`"


def row_vector(parent: FragT, rows: int, dtype: str, partial: str | None = None) -> FragT:
    """The vector of `rows` values that belongs to `parent`.

    For a `vec` its elements are cut into `rows` rows of equal length, whatever its shape; `chunk` is the number of runs in a row.
    """
    if parent.form == "vec":
        return FragT("rowvec", rows, 1, dtype, partial, None, parent.rows * parent.cols // (rows * (parent.chunk or 1)), parent="vec")
    if parent.form in ("rowvec", "colvec"):
        return FragT("rowvec", rows, 1, dtype, partial, parent.warps, parent.chunk, parent=parent.parent)
    return FragT("rowvec", rows, 1, dtype, partial, parent.warps, parent=parent.form)


def rows_of_vec(x: FragT, length: int) -> str | None:
    """Why a `vec` cannot be reduced over rows of `length` consecutive elements, as a lower-case sentence; None if it can."""
    run, total = x.chunk or 1, x.rows * x.cols
    if length < 1 or total % length:
        return f"{total} elements are not whole rows of {length}"
    if length % run or length // run not in LANES:
        return f"a row of {length} elements in runs of {run} lies on {-(-length // run)} lanes, it must be 1, 2, 4, .. or 32"
    return None


def follows(vector: FragT, t: FragT) -> bool:
    """Whether every thread holds the value of `vector` for each row that it has of `t`."""
    if t.form == "vec":
        return vector.parent == "vec" and vector.rows * (vector.chunk or 1) * (t.chunk or 1) == t.rows * t.cols
    if t.form == "colvec" and vector.parent == "vec":
        return False
    return owners(vector) == owners(t)


def owners(t: FragT) -> str:
    """What decides which threads have which rows and columns: a thread a row (`rows`), runs (`vec`), or the tiles of matrix instructions."""
    form = t.parent if t.form in ("rowvec", "colvec") else t.form
    return form if form in ("rows", "vec") else "acc"


def rows_placed(coords: object) -> bool:
    """Whether a row vector among the coordinates of a tile places its rows along an axis beyond the second, which then do not run along the second."""
    return isinstance(coords, tuple) and any(isinstance(c.type, FragT) and c.type.form == "rowvec" for c in coords[2:])

"""Global memory: the tensors of a run, read and written element by element or as clipped boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cake_backend.simulate.faults import HELP, Abort
from cake_backend.simulate.floats import Array, decode, is_float, numpy_dtype, raw_dtype
from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.program import Param, Program

Coords = tuple[int, ...]
_FAR = 1 << 60
"""An index that lies outside every tensor, and that array arithmetic holds with an offset."""


class Tensor:
    """One tensor: `raw` holds its bits outermost first; `owner` which CTA wrote an element last (0: none, else CTA + 1), `unfenced` by which
    CTA's ordinary stores that the async proxy need not see yet."""

    def __init__(self, name: str, dtype: str, array: Array) -> None:
        self.name = name
        self.dtype = dtype
        self.array = np.array(array, order="C", copy=True)
        self.raw: Array = self.array.view(raw_dtype(dtype))
        self.owner: Array | None = None
        self.unfenced: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, outermost first."""
        return self.raw.shape

    def inside(self, at: tuple[Array, ...]) -> Array:
        """Which elements of an index (one array an axis, outermost first) exist."""
        ok = np.ones(np.broadcast_shapes(*(a.shape for a in at)), np.bool_)
        for a, extent in zip(at, self.shape, strict=True):
            ok &= (a >= 0) & (a < extent)
        return ok

    def block(self, coords: Coords, axes: tuple[int, int], rows: int, cols: int) -> Array:
        """The box of rows x cols at `coords` (innermost first), columns and rows along the axes `axes` = (column, row); zero outside."""
        out = np.zeros((rows, cols), self.raw.dtype)
        cut = self.clipped(coords, axes, rows, cols)
        if cut is not None:
            where, at, turned = cut
            part = self.raw[at]
            out[where] = part.T if turned else part
        return out

    def clipped(self, coords: Coords, axes: tuple[int, int], rows: int, cols: int) -> tuple[Any, Any, bool] | None:
        """The part of a box that exists: (its place in the box, its index here, whether rows and columns are swapped here); None if empty."""
        rank = len(self.shape)
        at: list[Any] = [None] * rank
        place: dict[int, slice] = {}
        for axis, c in enumerate(coords):
            extent, dim = self.shape[rank - 1 - axis], rank - 1 - axis
            length = cols if axis == axes[0] else rows if axis == axes[1] else 1
            lo, hi = max(0, -c), min(length, extent - c)
            if lo >= hi:
                return None
            if axis in axes:
                place[axis] = slice(lo, hi)
                at[dim] = slice(c + lo, c + hi)
            else:
                at[dim] = c
        if axes[0] == axes[1] or rank == 1:
            return (0, place[axes[0]]), tuple(at), False
        return (place[axes[1]], place[axes[0]]), tuple(at), axes[1] < axes[0]

    def put(self, at: Any, raw: Array, cta: int) -> bool:
        """Write bits at an index; True if another CTA had left something else in one of the elements."""
        if self.owner is None:
            self.owner = np.zeros(self.shape, np.int32)
        owner = self.owner[at]
        conflict = bool(((owner != 0) & (owner != cta + 1) & (self.raw[at] != raw)).any())
        self.raw[at] = raw
        self.owner[at] = cta + 1
        return conflict

    def stored(self, at: Any, cta: int) -> None:
        """Ordinary stores wrote an index: the async proxy may see what was there before until somebody fences."""
        if self.unfenced is None:
            self.unfenced = np.zeros(self.shape, np.int32)
        self.unfenced[at] = cta + 1

    def fence(self, cta: int | None = None) -> None:
        """The async proxy sees the ordinary stores of one CTA, or of all."""
        if self.unfenced is not None:
            self.unfenced[...] = 0 if cta is None else np.where(self.unfenced == cta + 1, 0, self.unfenced)

    def has_nan(self, raw: Array) -> bool:
        """Whether bits of this tensor's type hold a NaN."""
        return is_float(self.dtype) and bool(np.isnan(decode(raw, self.dtype)).any())


def box_axes(rank: int, rows: int, cols: int, box: tuple[int, ...] | None) -> tuple[int, int]:
    """The tensor axes, innermost first, along which a view's columns and rows run: `box` names them by its entries that are not 1."""
    if box is None:
        return 0, min(1, rank - 1)
    wide = [i for i, n in enumerate(box) if n != 1]
    if len(wide) >= 2:
        return wide[0], wide[1]
    only = wide[0] if wide else 0
    other = next((i for i in range(rank) if i != only), only)
    return (other, only) if cols == 1 and rows != 1 else (only, other)


def index_of(coords: Any, along: dict[int, Array]) -> tuple[Array, ...]:
    """Index arrays, outermost first, for coordinates (innermost first) with offsets along some axes."""
    return tuple(np.asarray(reachable(coords[axis]) + along.get(axis, 0)) for axis in reversed(range(len(coords))))


def reachable(coordinate: Any) -> Any:
    """A coordinate as an array can be asked for it: one of more digits than that lies as far outside."""
    return max(-_FAR, min(coordinate, _FAR)) if isinstance(coordinate, int) else coordinate


def bind_tensors(program: Program, arrays: Mapping[str, Any], of_views: Mapping[str, str]) -> dict[str, Tensor]:
    """Copies of the arguments as tensors; `of_views` gives the dtype of parameters that declare none. Raises `Abort` (X013)."""
    out: dict[str, Tensor] = {}
    for p in program.tensors.values():
        if p.name not in arrays:
            raise Abort(Fault("X013", f"no array is given for `{p.name}`", p.span))
        out[p.name] = _bound(p, np.asarray(arrays[p.name]), p.dtype or of_views.get(p.name))
    return out


def _bound(p: Param, array: Array, dtype: str | None) -> Tensor:
    if array.ndim != p.rank:
        raise Abort(
            Fault(
                "X013",
                f"`{p.name}` has {p.rank} dimensions, its array has {array.ndim}",
                p.span,
                facts={"expected": p.rank, "found": array.ndim},
            )
        )
    if dtype is None:
        dtype = next((d for d in DTYPES if d != "tf32" and DTYPES[d].numpy_name == array.dtype.name), "f32")
    if numpy_dtype(dtype) != array.dtype:
        raise Abort(
            Fault(
                "X013",
                f"`{p.name}` holds {dtype}, its array {array.dtype.name}",
                p.span,
                facts={"expected": dtype, "found": array.dtype.name},
            )
        )
    if p.kind == "tma" and array.ndim > 1 and array.shape[-1] * DTYPES[dtype].bits % 128:
        row = array.shape[-1] * DTYPES[dtype].bits // 8
        raise Abort(
            Fault("X015", f"rows of `{p.name}` are {row} bytes apart, a tensor map needs multiples of 16", p.span, help=HELP["X015"])
        )
    return Tensor(p.name, dtype, array)

"""Shared memory as bytes, seen through two proxies, and the elements of views in it.

One byte array a (CTA, pool) and a second one for what the async proxy sees: ordinary writes reach it with the next `fence_proxy`. Both
start, and are filled again under every copy in flight, with 0xFF, which is a NaN of every floating-point type. Views are placed by
`cake_ir.layout`, so views that overlap, or disagree on a swizzle, read each other's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cake_backend.simulate.floats import RAW, Array, numpy_dtype
from cake_ir.layout import ViewLayout, linear_offset, offset_table, view_problem
from cake_ir.placement import view_layout
from cake_ir.program import Program

POISON = 0xFF
GRANULE = 16
"""Bytes of one cell of the guards: no asynchronous copy or operand is finer."""

Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Elements of one view: `index` counts elements of `size` bytes (of half a byte where `packed`) from the pool's base, `granules` the
    16-byte cells they touch."""

    pool: str
    size: int
    index: Index
    granules: Index
    packed: bool = False


class OutsideView(Exception):
    """A rectangle leaves its view, a stage number the view's stages, or a view its pool."""


class Misaligned(Exception):
    """An address is not the multiple of bytes that its use needs."""


class Placement:
    """Where the elements of a program's views are; shared by all CTAs of a run."""

    def __init__(self, program: Program) -> None:
        self.layouts: dict[str, ViewLayout] = {name: view_layout(v) for name, v in program.views.items()}
        self.pools: dict[str, str] = {name: v.pool for name, v in program.views.items()}
        self.size: dict[str, int] = {name: numpy_dtype(v.dtype).itemsize for name, v in program.views.items()}
        self.nbytes: dict[str, int] = {name: pool.nbytes for name, pool in program.pools.items()}
        self._tables: dict[tuple[str, int], Index] = {}
        self._cells: dict[Any, Cells] = {}

    def table(self, view: str, stage: int) -> Index:
        """Element numbers of one stage by (row, column)."""
        found = self._tables.get((view, stage))
        if found is None:
            layout = self.layouts[view]
            if not 0 <= stage < layout.stages:
                raise OutsideView(f"stage {stage} of `{view}`, which has {layout.stages}")
            fault = view_problem(layout)
            if fault:
                raise Misaligned(f"`{view}`: {fault}")
            flat = np.frombuffer(offset_table(layout, stage), np.int64)
            found = (flat // (4 if layout.elem_bits == 4 else self.size[view])).astype(np.intp).reshape(layout.rows, layout.cols)
            self._tables[view, stage] = found
        return found

    def aligned(self, view: str, stage: int, row: int, col: int, to: int) -> None:
        """Check that a rectangle starts on a multiple of `to` bytes; raises `Misaligned`."""
        at = linear_offset(self.layouts[view], stage, row, col)
        if at % to:
            raise Misaligned(f"`{view}` starts at byte {at} of its pool here, not at a multiple of {to}")

    def rectangle(self, view: str, stage: int, row: int, rows: int, col: int, cols: int, transposed: bool = False) -> Cells:
        """A stored rectangle; `transposed` gives its cells by (column, row)."""
        key = (view, stage, row, rows, col, cols, transposed)
        found = self._cells.get(key)
        if found is None:
            self._inside(view, row, rows, col, cols)
            index = self.table(view, stage)[row : row + rows, col : col + cols]
            found = self._cells[key] = self._make(view, index.T if transposed else index)
        return found

    def elements(self, key: Any, view: str, stage: int, rows: Array, cols: Array) -> Cells:
        """The elements at (rows, cols), broadcast against each other; `key` identifies the pattern for the cache."""
        full = (view, stage, key)
        found = self._cells.get(full)
        if found is None:
            layout = self.layouts[view]
            if rows.size and (rows.min() < 0 or rows.max() >= layout.rows or cols.min() < 0 or cols.max() >= layout.cols):
                raise OutsideView(
                    f"rows {rows.min()}..{rows.max()}, columns {cols.min()}..{cols.max()} of `{view}`, which is {layout.rows} x {layout.cols}"
                )
            found = self._cells[full] = self._make(view, self.table(view, stage)[rows, cols])
        return found

    def _inside(self, view: str, row: int, rows: int, col: int, cols: int) -> None:
        layout = self.layouts[view]
        if row < 0 or col < 0 or row + rows > layout.rows or col + cols > layout.cols:
            raise OutsideView(f"rows {row}..{row + rows}, columns {col}..{col + cols} of `{view}`, which is {layout.rows} x {layout.cols}")

    def _make(self, view: str, index: Index) -> Cells:
        size, packed = self.size[view], self.layouts[view].elem_bits == 4
        index = np.ascontiguousarray(index)
        pool = self.pools[view]
        end = 0 if not index.size else int(index.max()) // 2 + 1 if packed else (int(index.max()) + 1) * size
        if end > self.nbytes[pool]:
            raise OutsideView(f"byte {end - 1} of pool `{pool}`, which has {self.nbytes[pool]}")
        first = np.unique(index // (2 * GRANULE) if packed else index * size // GRANULE)
        return Cells(pool, size, index, first, packed)


@dataclass(slots=True, eq=False)
class Pool:
    """The bytes of one pool of one CTA: `data` as threads see it, `seen` as the async proxy does; counters of work in flight a granule."""

    nbytes: int
    data: dict[int, Array] = field(default_factory=dict)
    seen: dict[int, Array] = field(default_factory=dict)
    reading: Array = field(default_factory=lambda: np.zeros(0, np.int16))
    writing: Array = field(default_factory=lambda: np.zeros(0, np.int16))
    unfenced: dict[int, list[Cells]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole = -(-self.nbytes // GRANULE) * GRANULE
        for target in (self.data, self.seen):
            raw = np.full(whole, POISON, np.uint8)
            for bits, kind in RAW.items():
                target[bits // 8] = raw.view(kind)
        self.reading = np.zeros(whole // GRANULE, np.int16)
        self.writing = np.zeros(whole // GRANULE, np.int16)

    def read(self, cells: Cells) -> Array:
        """Bits as an ordinary load sees them."""
        return _taken(self.data, cells)

    def read_async(self, cells: Cells) -> Array:
        """Bits as the async proxy sees them."""
        return _taken(self.seen, cells)

    def write(self, cells: Cells, raw: Array, writer: int = 0) -> None:
        """An ordinary store: the async proxy sees it after the next fence of who wrote it (a number that tells warps apart)."""
        _put(self.data, cells, raw)
        self.unfenced.setdefault(writer, []).append(cells)

    def write_async(self, cells: Cells, raw: Array) -> None:
        """Bits written by a copy engine, or poison under a copy in flight: seen by everyone."""
        _put(self.data, cells, raw)
        _put(self.seen, cells, raw)

    def poison(self, cells: Cells) -> None:
        """Make the bytes undefined."""
        ones = np.full(cells.index.shape, (1 << cells.size * 8) - 1, RAW[cells.size * 8])
        _put(self.data, cells, ones)
        _put(self.seen, cells, ones)

    def fence(self, writer: int = 0) -> None:
        """Every ordinary write of one warp so far, and what other CTAs have sent, becomes visible to the async proxy."""
        for who in {writer, 0}:
            for cells in self.unfenced.pop(who, ()):
                _put(self.seen, cells, _taken(self.data, cells))

    def stale(self, cells: Cells) -> bool:
        """Whether the async proxy would read other bits here than a thread."""
        return bool(self.unfenced) and bool((_taken(self.data, cells) != _taken(self.seen, cells)).any())


def _taken(arrays: dict[int, Array], cells: Cells) -> Array:
    """Bits of some elements; of packed ones each in a byte."""
    if not cells.packed:
        return arrays[cells.size][cells.index]
    return arrays[1][cells.index >> 1] >> (4 * (cells.index & 1)).astype(np.uint8) & np.uint8(15)


def _put(arrays: dict[int, Array], cells: Cells, raw: Array) -> None:
    """Write bits of some elements; two packed ones share a byte, so the lower halves go first."""
    if not cells.packed:
        arrays[cells.size][cells.index] = raw
        return
    raw, half, at = np.broadcast_to(raw, cells.index.shape), cells.index & 1, cells.index >> 1
    for k in (0, 1):
        mine = half == k
        arrays[1][at[mine]] = arrays[1][at[mine]] & np.uint8(0xF0 >> 4 * k) | (raw[mine] & np.uint8(15)) << np.uint8(4 * k)


def is_poison(raw: Array) -> bool:
    """Whether any element has all bits set."""
    return bool((raw == raw.dtype.type(np.iinfo(raw.dtype).max)).any())

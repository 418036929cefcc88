"""Shared memory cut into atoms: sets of bytes that every access touches wholly or not at all.

A region is what one access touches: a rectangle of one stage of a view. Regions are met while walking, so atoms are refined as new ones
turn up: an atom that a region cuts becomes two, and whoever keeps state by atom is told to copy it. Bytes are counted in granules, the
largest power of two that divides every boundary. Physical addresses are used, since views of different swizzles may share bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from cake_ir.derive.structure import nodes
from cake_ir.dtypes import DTYPES
from cake_ir.layout import SWIZZLES, ViewLayout, stage_stride
from cake_ir.program import Expr, Program, View
from cake_ir.types import ViewT

Region = list[int]
"""The atoms that an access touches; grows when one of them is split."""
Cells = tuple[int, int]
"""Granules: the first of them, and one bit each from there on. The first is there, so that a set of granules is said in one way, and as short
as it is: memory of 200 KB that is read by elements has tens of thousands of granules."""


_BLOCK = 8
"""Atoms are looked for by blocks of 2^8 granules, since a program may have hundreds of them."""


class OutsideView(Exception):
    """A rectangle that leaves its view."""

    def __init__(self, view: str, row: int, rows: int, col: int, cols: int) -> None:
        super().__init__(f"rows {row}..{row + rows}, columns {col}..{col + cols} of `{view}`")
        self.view, self.row, self.rows, self.col, self.cols = view, row, rows, col, cols


def layout_of(view: View) -> ViewLayout:
    """The storage of a declared view."""
    rows, cols = (1, view.shape[0]) if len(view.shape) == 1 else (view.shape[0], view.shape[1])
    return ViewLayout(view.offset, rows, cols, DTYPES[view.dtype].bits, view.stages, view.swizzle, view.stage_bytes)


@lru_cache(maxsize=4096)
def _repeat(width: int, times: int) -> int:
    """A number with bit 0 of each of `times` fields of `width` bits set."""
    return ((1 << (width * times)) - 1) // ((1 << width) - 1)


@lru_cache(maxsize=4096)
def stage_mask(layout: ViewLayout, row: int, rows: int, col: int, cols: int, granule: int) -> int:
    """The granules that a rectangle of stage 0 touches, as bits counted from the pool's base."""
    lo, hi = col * layout.elem_bits // 8, -(-(col + cols) * layout.elem_bits // 8)
    if not layout.swizzle:
        pitch = layout.row_bytes
        if hi - lo == pitch:
            return _run(layout.offset + row * pitch, layout.offset + (row + rows) * pitch, granule)
        one = _run(lo, hi, granule)
        if pitch % granule == 0 and lo % granule == 0:
            return (one * _repeat(pitch // granule, rows)) << ((layout.offset + row * pitch) // granule)
        mask = 0
        for r in range(row, row + rows):
            mask |= _run(layout.offset + r * pitch + lo, layout.offset + r * pitch + hi, granule)
        return mask
    mode = SWIZZLES[layout.swizzle]
    mask, stride = 0, layout.rows * mode.span
    for panel in range(lo // mode.span, -(-hi // mode.span)):
        first, last = max(lo - panel * mode.span, 0), min(hi - panel * mode.span, mode.span)
        top = layout.offset + panel * stride
        if (first, last) == (0, mode.span):
            mask |= _run(top + row * mode.span, top + (row + rows) * mode.span, granule)
        else:
            mask |= _slab(mode.name, mode.span, top, row, rows, first, last, granule)
    return mask


@lru_cache(maxsize=4096)
def _stage_cells(layout: ViewLayout, row: int, rows: int, col: int, cols: int, granule: int) -> Cells:
    """What `stage_mask` says."""
    return _cells(0, stage_mask(layout, row, rows, col, cols, granule))


def _cells(base: int, bits: int) -> Cells:
    """The granules of some bits that count from `base`."""
    first = (bits & -bits).bit_length() - 1
    return base + first, bits >> first


def _run(start: int, end: int, granule: int) -> int:
    a, b = start // granule, -(-end // granule)
    return ((1 << (b - a)) - 1) << a


def _slab(swizzle: str, span: int, top: int, row: int, rows: int, first: int, last: int, granule: int) -> int:
    """Part of a panel's columns over some rows: the permutation repeats every eight rows."""
    apply = SWIZZLES[swizzle].apply

    def line(r: int) -> int:
        bits = 0
        for chunk in range(first & ~15, last, 16):
            at = apply(top + r * span + chunk)
            bits |= _run(at + max(first - chunk, 0), at + min(last - chunk, 16), granule)
        return bits

    head = min(rows, -row % 8)
    mask = 0
    for r in range(row, row + head):
        mask |= line(r)
    row, rows = row + head, rows - head
    if rows >= 8:
        period = 0
        for r in range(row, row + 8):
            period |= line(r)
        mask |= period * _repeat(8 * span // granule, rows // 8)
    for r in range(row + rows - rows % 8, row + rows):
        mask |= line(r)
    return mask


class Regions:
    """The atoms of one program's shared memory, and the region of each rectangle met so far."""

    def __init__(self, program: Program) -> None:
        self.views = {v.name: layout_of(v) for v in program.views.values()}
        self.granule = self._granule(program)
        base = 0
        self.base: dict[str, int] = {}
        for pool in program.pools.values():
            self.base[pool.name] = base
            base += -(-pool.nbytes // self.granule)
        self.tmem_base = base
        self.shift = {v.name: self.base[v.pool] for v in program.views.values()}
        self.strides = {name: stage_stride(layout) for name, layout in self.views.items()}
        self.cells: list[Cells] = []
        self.holders: list[list[Region]] = []
        self.known: dict[Cells, Region] = {}
        self._near: dict[int, list[int]] = {}
        self._rectangles: dict[tuple[str, int, int, int, int], Cells] = {}
        self.on_split: Callable[[int], None] = lambda atom: None

    def _granule(self, program: Program) -> int:
        unit = 16
        for layout in self.views.values():
            if layout.swizzle is None:
                size = max(1, layout.elem_bits // 8)
                for n in (layout.offset, stage_stride(layout) if layout.stages > 1 else 0, layout.row_bytes, size if layout.rows == 1 else 0):
                    while n % unit:
                        unit //= 2
        for op, found in zip(program.ops, nodes(program), strict=True):
            read = op.operands.get("view")
            if op.name == "ld" and isinstance(read, Expr) and isinstance(read.type, ViewT) and self.views[read.type.view].swizzle is None:
                unit = min(unit, max(1, self.views[read.type.view].elem_bits // 8))  # one element stands for itself
            for x in found:
                if x.op == "cols" and isinstance(x.type, ViewT) and self.views[x.type.view].swizzle is None:
                    width = x.type.cols * self.views[x.type.view].elem_bits // 8  # members slice a row into equal parts
                    while width % unit and unit > 1:
                        unit //= 2
        return unit

    def region(self, view: str, stage: int, row: int, rows: int, col: int, cols: int) -> Region:
        """The atoms of a rectangle. Raises `OutsideView`."""
        cells = self._rectangles.get((view, row, rows, col, cols))
        if cells is None:
            layout = self.views[view]
            if row < 0 or col < 0 or row + rows > layout.rows or col + cols > layout.cols:
                raise OutsideView(view, row, rows, col, cols)
            first, bits = _stage_cells(layout, row, rows, col, cols, self.granule)
            cells = self._rectangles[view, row, rows, col, cols] = first + self.shift[view], bits
        return self._of((cells[0] + stage * self.strides[view] // self.granule, cells[1]))

    def columns(self, first: int, count: int) -> Region:
        """The atoms of tensor-memory columns, behind all shared memory."""
        return self._of((self.tmem_base + first, (1 << count) - 1))

    def mask(self, atom: int) -> int:
        """The granules of an atom, as bits counted from the first pool's base."""
        first, bits = self.cells[atom]
        return bits << first

    def _of(self, cells: Cells) -> Region:
        found = self.known.get(cells)
        if found is None:
            found = self.known[cells] = self._add(*cells)
        return found

    def _add(self, low: int, bits: int) -> Region:
        region: Region = []
        high, rest, near = low + bits.bit_length(), bits, self._near
        for atom in sorted({atom for block in range(low >> _BLOCK, (high - 1 >> _BLOCK) + 1) for atom in near.get(block, ())}):
            first, own = self.cells[atom]
            if first >= high:
                continue
            both = own & (bits << low - first if low >= first else bits >> first - low)  # counted from the atom's first
            if not both:
                continue
            rest &= ~(both << first - low if first >= low else both >> low - first)
            if both != own:
                atom = self._split(atom, both)
            region.append(atom)
            self.holders[atom].append(region)
        if rest:  # bytes that nothing has touched yet
            self._place(_cells(low, rest))
            region.append(len(self.cells) - 1)
            self.holders.append([region])
            self.on_split(-1)
        return region

    def _place(self, cells: Cells) -> None:
        """Number an atom, and put it where those who touch bytes nearby look for it."""
        atom, (low, bits) = len(self.cells), cells
        self.cells.append(cells)
        for block in range(low >> _BLOCK, (low + bits.bit_length() - 1 >> _BLOCK) + 1):
            self._near.setdefault(block, []).append(atom)

    def _split(self, atom: int, part: int) -> int:
        """Part an atom in two, the granules of `part`, counted from its first, and the others; returns the atom of `part`.

        What becomes the new atom is also held by every holder of the old one. It is `part` where that is little of much: else whatever is left of
        a tile that is touched element by element would be told anew to all blocks with each of them."""
        first, own = self.cells[atom]
        inside, rest = _cells(first, part), _cells(first, own & ~part)
        narrow = inside[1].bit_length() * 8 < rest[1].bit_length()
        self.cells[atom], fresh = (rest, inside) if narrow else (inside, rest)
        self._place(fresh)
        new, holders = len(self.cells) - 1, self.holders[atom]
        self.holders.append(list(holders))
        for region in holders:
            region.append(new)
        self.on_split(atom)
        return new if narrow else atom

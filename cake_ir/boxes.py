"""TMA boxes of a view: which boxes one tensor copy needs, where each lands, and at which coordinates it starts.

A copy of a rectangle of a view becomes one box per panel and per 256 rows, because a box is at most one swizzle span wide
and 256 elements long on every axis. Coordinates and box extents are innermost first, as in the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from cake_ir.layout import LayoutError, Panel, ViewLayout, linear_offset, panels, stage_stride
from cake_ir.record import record

MAX_BOX = 256
GATHERED = 4
"""Rows that one instruction of a gather copies."""


@record()
class Box:
    """One box: ``extents`` elements along each tensor axis, ``coords`` to add to the copy's coordinates, ``smem`` bytes
    from the first byte of the view's stage to where it lands, ``bytes`` it moves (out-of-bounds elements included)."""

    extents: tuple[int, ...]
    coords: tuple[int, ...]
    smem: int
    bytes: int


def _axes(rows: int, cols: int, rank: int, box: tuple[int, ...] | None) -> tuple[int, int]:
    """The tensor axes that the view's columns and rows run along; raises ``LayoutError`` when ``box`` says otherwise."""
    if box is None:
        if rank == 1 and rows != 1:
            raise LayoutError(f"a view of {rows} rows cannot be filled from a 1-D tensor")
        return 0, min(1, rank - 1)
    if len(box) != rank:
        raise LayoutError(f"box={box} has {len(box)} entries, the tensor has {rank} axes")
    wide = [i for i, n in enumerate(box) if n != 1]
    want = [n for n in (cols, rows) if n != 1]
    if [box[i] for i in wide] != want:
        shape = " x ".join(str(n) for n in want)
        raise LayoutError(f"the entries of box={box} that are not 1 must be the view's columns and rows, in that order: {shape}")
    if cols == 1:
        return 0, wide[0] if wide else min(1, rank - 1)
    if rows == 1:
        other = next((i for i in range(rank) if i != wide[0]), wide[0])
        return wide[0], other
    return wide[0], wide[1]


def _stretches(view: ViewLayout, col: int, cols: int) -> Iterator[tuple[Panel, int, int]]:
    """The panels that some of a view's columns lie in, each with the first of them there and the one behind the last."""
    for p in panels(view):
        lo, hi = max(col, p.col), min(col + cols, p.col + p.cols)
        if lo < hi:
            yield p, lo, hi


@lru_cache(maxsize=2048)
def tma_boxes(
    view: ViewLayout,
    rank: int,
    *,
    row: int = 0,
    rows: int | None = None,
    col: int = 0,
    cols: int | None = None,
    box: tuple[int, ...] | None = None,
    slices: int = 1,
    slice_index: int = 0,
    single_row: bool = False,
) -> tuple[Box, ...]:
    """Boxes that copy rows ``row..`` x columns ``col..`` of one stage between the view and a tensor of ``rank`` axes.

    ``box`` places the columns and rows on other axes than 0 and 1 (its entries that are not 1). ``slices`` > 1 is a
    multicast: rows are cut into that many equal parts and the boxes of part ``slice_index`` are returned. ``single_row``
    gives the boxes of the rectangle's first row alone, which a ragged tail is stored with. Raises ``LayoutError`` with one
    lower-case sentence when the copy cannot be done with boxes.
    """
    rows = view.rows - row if rows is None else rows
    cols = view.cols - col if cols is None else cols
    axis_c, axis_r = _axes(rows, cols, rank, box)
    if single_row:
        rows = 1
    if slices > 1:
        if rows % slices or (view.swizzle and rows // slices % 8):
            raise LayoutError(f"{rows} rows cannot be cut into {slices} slices of whole 8-row groups for the multicast")
        rows //= slices
        first = row + slice_index * rows
    else:
        first = row
    if view.swizzle and not single_row and (row % 8 or (rows % 8 and view.rows != rows)):
        raise LayoutError(f"rows {row}..{row + rows} must start and end on a multiple of 8, the swizzle's atom")
    out: list[Box] = []
    for p, lo, hi in _stretches(view, col, cols):
        if view.swizzle and (lo, hi) != (p.col, p.col + p.cols):
            raise LayoutError(f"columns {col}..{col + cols} are not whole panels of {p.cols} columns, the width of one swizzled box")
        if not view.swizzle and hi - lo != view.cols and rows > 1:
            raise LayoutError("a part of the columns of an unswizzled view is not contiguous, copy whole rows or swizzle it")
        for c, width in _pieces(hi - lo, rows == 1):
            for r, height in _pieces(rows, True):
                extents, coords = [1] * rank, [0] * rank
                extents[axis_c], coords[axis_c] = width, lo - col + c
                if rows > 1 or height > 1:
                    extents[axis_r], coords[axis_r] = height, first - row + r
                elif slices > 1:
                    coords[axis_r] = first - row + r
                size = width * height * view.elem_bits // 8
                if width * view.elem_bits // 8 % 16:
                    raise LayoutError(f"a box row of {width} elements is {width * view.elem_bits // 8} bytes, not a multiple of 16")
                smem = linear_offset(view, 0, first + r, lo + c) - view.offset
                out.append(Box(tuple(extents), tuple(coords), smem, size))
    fault = _alignment_problem(view, out)
    if fault:
        raise LayoutError(fault)
    return tuple(out)


@lru_cache(maxsize=2048)
def gather_boxes(view: ViewLayout, *, row: int = 0, rows: int | None = None, col: int = 0, cols: int | None = None) -> tuple[Box, ...]:
    """What the instructions of a gather move: one box a panel and four rows, from a 2-D map whose own boxes are one row high.

    ``coords`` are the columns to add and the place of the first of the four row numbers. Raises ``LayoutError`` as ``tma_boxes`` does.
    """
    rows = view.rows - row if rows is None else rows
    cols = view.cols - col if cols is None else cols
    if row % GATHERED or rows % GATHERED:
        raise LayoutError(f"rows {row}..{row + rows} must start and end on a multiple of {GATHERED}, the rows that one instruction gathers")
    out: list[Box] = []
    for p, lo, hi in _stretches(view, col, cols):
        if (lo, hi) != (p.col, p.col + p.cols):
            part = f"whole panels of {p.cols} columns, the width of one swizzled box" if view.swizzle else "whole rows, a part of an unswizzled row is not contiguous"
            raise LayoutError(f"columns {col}..{col + cols} are not {part}")
        _pieces(hi - lo, False)
        if (hi - lo) * view.elem_bits // 8 % 16:
            raise LayoutError(f"a row of {hi - lo} elements is {(hi - lo) * view.elem_bits // 8} bytes, not a multiple of 16")
        for r in range(0, rows, GATHERED):
            smem = linear_offset(view, 0, row + r, lo) - view.offset
            out.append(Box((hi - lo, 1), (lo - col, r), smem, GATHERED * (hi - lo) * view.elem_bits // 8))
    fault = _alignment_problem(view, out)
    if fault:
        raise LayoutError(fault)
    return tuple(out)


def _pieces(extent: int, may_split: bool) -> list[tuple[int, int]]:
    """(start, length) pieces of at most 256 that cover ``extent``, equal in length where possible."""
    if extent <= MAX_BOX:
        return [(0, extent)]
    if not may_split:
        raise LayoutError(f"an unswizzled view of {extent} columns is wider than a box of {MAX_BOX}, swizzle it so that panels split it")
    count = -(-extent // MAX_BOX)
    if extent % count == 0:
        size = extent // count
        return [(i * size, size) for i in range(count)]
    return [(start, min(MAX_BOX, extent - start)) for start in range(0, extent, MAX_BOX)]


def _alignment_problem(view: ViewLayout, boxes: list[Box]) -> str | None:
    """A box must land on a multiple of 128 bytes in every stage."""
    for b in boxes:
        if (view.offset + b.smem) % 128 or (view.stages > 1 and stage_stride(view) % 128):
            where = view.offset + b.smem
            if where % 128:
                return f"a box lands at byte {where} of the pool, not a multiple of 128"
            up = -(-stage_stride(view) // 128) * 128
            return f"stages are {stage_stride(view)} bytes apart, a box must land on a multiple of 128 in every stage; stage_bytes={up} pads them"
    return None


def transaction_bytes(boxes: tuple[Box, ...], slices: int = 1) -> int:
    """Bytes that a barrier must expect for these boxes: with multicast every CTA receives all ``slices``."""
    return sum(b.bytes for b in boxes) * slices

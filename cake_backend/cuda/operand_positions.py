"""Rows and columns of operand fragments (`a`, `b`) and of `rows`, whose element order differs from an accumulator's.

A tile of an operand is 32 bytes deep. With p elements a register, a thread of a quad has p neighbouring columns of each half: the order of
16-bit elements is the accumulator's (p = 2), that of 8-bit elements (p = 4) and of tf32 (p = 1) is not. Wider values that are computed from
16-bit operands stay where those are.
"""

from __future__ import annotations

from cake_backend.cuda.context import Context
from cake_backend.cuda.fragments import Index, operand_order, sum_text, tile_row, times_text, warp_row
from cake_ir.types import FragT


def a_row(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the row of element i of an `a` fragment."""
    p = operand_order(t)
    if p == 2:
        return tile_row(ctx, t, i)
    wm = t.warps[0] if t.warps else ctx.role.warps
    step = 16 if t.warps else 16 * ctx.role.warps
    block = "" if t.rows == 16 * wm else times_text(i.divided(t.cols // 2), step)
    return sum_text(warp_row(ctx, t, "acc"), block, times_text(i.bit(p.bit_length() - 1), 8), "(int)(lane >> 2)")


def _column(t: FragT, tile: str, half: str, within: str, p: int) -> str:
    return sum_text(times_text(tile, 8 * p), times_text(half, 4 * p), within, f"{p} * (int)(lane & 3u)" if p > 1 else "(int)(lane & 3u)")


def _tile(i: Index, elements: int, tiles: int) -> str:
    """Which of a row's tiles element i lies in, for tiles of `elements` elements a thread."""
    if tiles == 1:
        return "0"
    return i.quotient(elements).modulo(tiles) if i.exact(elements) else f"({i.divided(elements)}) % {tiles}"


def a_col(t: FragT, i: Index) -> str:
    """C text of the column of element i of an `a` fragment that is not in an accumulator's order."""
    p = operand_order(t)
    return _column(t, _tile(i, 4 * p, t.cols // (8 * p)), i.bit(p.bit_length()), i.modulo(p), p)


def b_row(t: FragT, i: Index) -> str:
    """C text of the row (of N) of element i of a `b` fragment."""
    wm, wn = t.warps or (1, 1)
    own = t.rows // wn
    first = f"{own} * (int)(warp / {wm}u)" if wn > 1 else ""
    tile = "" if own == 8 else times_text(i.divided(t.cols // 4), 8)
    return sum_text(first, tile, "(int)(lane >> 2)")


def b_col(t: FragT, i: Index) -> str:
    """C text of the column (of K) of element i of a `b` fragment."""
    p = operand_order(t)
    return _column(t, _tile(i, 2 * p, t.cols // (8 * p)), i.bit(p.bit_length() - 1), i.modulo(p), p)


def rows_row(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the row of element i of a `rows` fragment: a thread a row."""
    block = "" if t.rows == 32 * ctx.role.warps else times_text(i.divided(t.cols), 32 * ctx.role.warps)
    return sum_text(warp_row(ctx, t, "rows"), block, "(int)lane")


def rows_col(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the column of element i of a `rows` fragment."""
    return i.text if t.rows == 32 * ctx.role.warps else i.modulo(t.cols)

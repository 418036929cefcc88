"""Shared-memory descriptors of tensor-core operands: the fields an MMA reads instead of registers.

An operand is a rectangle of a swizzled view, read K-major (rows are M or N, columns are K) or, as ``view.T``, MN-major
(stored rows are K, stored columns M or N). ``wgmma`` (sm_90a) and ``tcgen05`` (sm_100a, sm_103a) give the same fields the
same meaning and encode them differently, so there is one function for the fields and one encoder each.

With ``span`` the swizzle's bytes and ``panel stride`` the bytes between the view's panels:

============  =====================================  ==================  =========================================
operand       LBO                                    SBO                 step along K, one instruction (32 B of K)
============  =====================================  ==================  =========================================
K-major       ignored (1 is written)                 8 x span            +32 B in a panel, + panel stride across
MN-major      panel stride (next atom along M or N)  8 x span (8 of K)   16-bit types: 16 x span
============  =====================================  ==================  =========================================
"""

from __future__ import annotations

from functools import lru_cache

from cake_ir.layout import SWIZZLES, LayoutError, ViewLayout, linear_offset, view_problem
from cake_ir.record import record

_WGMMA_MODE = {"128b": 1, "64b": 2, "32b": 3}
_TCGEN05_MODE = {"128b": 2, "64b": 4, "32b": 6}

# One instruction takes 32 bytes of K whatever the type (16 x 16-bit, 32 x 8-bit, 8 x tf32).
K_BYTES = 32


@record()
class MatrixDescriptor:
    """Descriptor fields in bytes. ``start`` counts from the pool's base; ``k_steps`` are the bytes to add to it for each
    instruction along K; ``row_steps`` for each block of 64 rows along M (A operands of more than 64 rows)."""

    start: int
    lbo: int
    sbo: int
    swizzle: str
    transposed: bool
    k_steps: tuple[int, ...]
    row_steps: tuple[int, ...]

    def wgmma(self, pool_base: int = 0) -> int:
        """The 64-bit word for ``wgmma`` when the pool starts at shared address ``pool_base`` (a multiple of 1,024)."""
        return _common(self, pool_base) | _WGMMA_MODE[self.swizzle] << 62

    def tcgen05(self, pool_base: int = 0) -> int:
        """The 64-bit word for ``tcgen05.mma``: the version field is 1 and the mode sits in bits 61 to 63."""
        return _common(self, pool_base) | 1 << 46 | _TCGEN05_MODE[self.swizzle] << 61


def _common(d: MatrixDescriptor, pool_base: int) -> int:
    """Start, LBO and SBO in units of 16 bytes, 14 bits each, where both encodings have them.

    The base offset (bits 49 to 51) stays 0: views start where the swizzle pattern does, which ``view_problem`` checks.
    """
    start = (pool_base + d.start) >> 4 & 0x3FFF
    return start | (d.lbo >> 4 & 0x3FFF) << 16 | (d.sbo >> 4 & 0x3FFF) << 32


def operand_problem(
    view: ViewLayout, row: int, rows: int, col: int, cols: int, transposed: bool, family: str = "wgmma", is_tf32: bool = False
) -> str | None:
    """Why the stored rectangle cannot be an operand of ``family`` (``"wgmma"`` or ``"tcgen05"``); ``None`` when it can."""
    fault = view_problem(view)
    if fault:
        return fault
    if view.swizzle is None:
        span = next((name for name, m in SWIZZLES.items() if view.row_bytes % m.span == 0), None)
        hint = f'declare it with swizzle="{span}"' if span else "make a row a multiple of 32 bytes and swizzle it"
        return f"{family} reads a swizzled view, this one has no swizzle; {hint}"
    if row % 8 or rows % 8:
        return f"rows {row}..{row + rows} must start and end on a multiple of 8 rows, the swizzle's atom"
    k_elems = K_BYTES * 8 // view.elem_bits
    if transposed:
        if is_tf32 and family == "tcgen05":
            return "tf32 is read transposed only through 128-byte swizzling of 32-byte atoms, which views do not have"
        if view.elem_bits != 16 and not (family == "tcgen05" and view.elem_bits == 8):
            return f"{family} reads {view.elem_bits}-bit operands K-major only, .T is for 16-bit types"
        if col % view.panel_cols:
            return f"columns from {col} must start on a panel of {view.panel_cols} columns when the view is read transposed"
        k, what = rows, "rows"
    else:
        if col * view.elem_bits // 8 % K_BYTES:
            return f"columns from {col} must start on a multiple of {k_elems}, the K of one instruction"
        k, what = cols, "columns"
    if k % k_elems:
        return f"K is {k} {what}, not a multiple of {k_elems}, the K of one instruction"
    return None


def copy_problem(view: ViewLayout, row: int, rows: int, col: int, cols: int, transposed: bool) -> str | None:
    """Why the stored rectangle cannot be copied to tensor memory by ``tcgen05.cp``; ``None`` when it can."""
    fault = view_problem(view)
    if fault:
        return fault
    if transposed:
        return "the copy reads rows as they are stored, `.T` is for operands of an MMA"
    if row % 8 or rows % 8:
        return f"rows {row}..{row + rows} must start and end on a multiple of 8 rows, the swizzle's atom"
    if view.swizzle is None:
        if view.row_bytes == 16:
            return None  # rows of 16 bytes one behind the other are what the copy reads without a swizzle
        span = next((name for name, m in SWIZZLES.items() if view.row_bytes % m.span == 0), None)
        hint = f'declare it with swizzle="{span}"' if span else "make a row a multiple of 32 bytes and swizzle it"
        return f"the copy reads a swizzled view, or rows of 16 bytes; {hint}"
    for what, n in (("start on", col), ("make", cols)):
        if n * view.elem_bits // 8 % K_BYTES:
            return f"its columns must {what} a multiple of {K_BYTES * 8 // view.elem_bits}, the 32 bytes that one copy takes of a row, found {n}"
    return None


@lru_cache(maxsize=1024)
def descriptor(
    view: ViewLayout, stage: int, row: int, rows: int, col: int, cols: int, transposed: bool = False, family: str = "wgmma"
) -> MatrixDescriptor:
    """Fields for the stored rectangle at (row, col) of ``stage`` of ``view``, read as it is or transposed.

    Raises ``LayoutError`` with the sentence of ``operand_problem`` when the rectangle cannot be described.
    """
    fault = operand_problem(view, row, rows, col, cols, transposed, family)
    if fault or view.swizzle is None:
        raise LayoutError(fault or "no swizzle")
    span, stride = SWIZZLES[view.swizzle].span, view.panel_stride
    start = linear_offset(view, stage, row, col)
    k_elems = K_BYTES * 8 // view.elem_bits
    if transposed:
        k_steps = tuple(i * k_elems * span for i in range(rows // k_elems))
        row_steps = tuple(linear_offset(view, stage, row, col + 64 * i) - start for i in range(-(-cols // 64)))
        return MatrixDescriptor(start, stride, 8 * span, view.swizzle, True, k_steps, row_steps)
    k_steps = tuple(linear_offset(view, stage, row, col + k_elems * i) - start for i in range(cols // k_elems))
    row_steps = tuple(64 * i * span for i in range(-(-rows // 64)))
    return MatrixDescriptor(start, 16, 8 * span, view.swizzle, False, k_steps, row_steps)

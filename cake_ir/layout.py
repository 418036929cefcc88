"""Where an element of a shared-memory view lives: the one map (view, stage, row, column) to bytes, for every reader.

Addresses are byte offsets from the pool's base, which is aligned to 1,024 bytes, so that the address bits that a swizzle
reads are the bits of the offset. A swizzled view is stored as *panels*: column slabs one swizzle span wide, each with all
rows of the view contiguous (``rows x span`` bytes), one after the other. A swizzle permutes the 16-byte chunks of one row
of one panel and nothing else, so whole panel rows occupy the same bytes with and without it. A view without a swizzle is
row-major with no padding. A 1-D view of n elements is ``rows=1, cols=n``.

The tensor-core descriptors of a view are in ``cake_ir.descriptors``, its TMA boxes in ``cake_ir.boxes``.
"""

from __future__ import annotations

from array import array
from functools import lru_cache

from cake_ir.record import record

Interval = tuple[int, int]


class LayoutError(ValueError):
    """A view or a rectangle of it that no layout can give; the message names sizes and says what would fit."""


@record()
class Swizzle:
    """One swizzle mode: ``span`` bytes of a panel row; ``mask`` the address bits that are XORed with the bits three
    above them; ``pattern`` bytes after which the permutation repeats, to which a view and its stages must be aligned."""

    name: str
    span: int
    mask: int
    pattern: int

    def apply(self, address: int) -> int:
        """The permuted address; applying it twice gives the address back."""
        return address ^ ((address >> 3) & self.mask)


SWIZZLES: dict[str, Swizzle] = {
    "128b": Swizzle("128b", 128, 0x70, 1024),  # [6:4] ^= [9:7]
    "64b": Swizzle("64b", 64, 0x30, 512),  # [5:4] ^= [8:7]
    "32b": Swizzle("32b", 32, 0x10, 256),  # [4] ^= [7]
}


@record()
class ViewLayout:
    """The storage of one view: ``offset`` bytes into the pool, ``rows x cols`` elements of ``elem_bits`` a stage.

    ``stage_bytes`` pads a stage (the distance between stages); ``None`` packs them. ``swizzle`` is a key of ``SWIZZLES``.
    """

    offset: int
    rows: int
    cols: int
    elem_bits: int
    stages: int = 1
    swizzle: str | None = None
    stage_bytes: int | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes of one row's elements."""
        return self.cols * self.elem_bits // 8

    @property
    def span(self) -> int:
        """Bytes of one row in one panel: the swizzle's span, or the whole row without a swizzle."""
        return SWIZZLES[self.swizzle].span if self.swizzle else self.row_bytes

    @property
    def panel_cols(self) -> int:
        """Columns in one panel."""
        return self.span * 8 // self.elem_bits if self.swizzle else self.cols

    @property
    def panel_stride(self) -> int:
        """Bytes from one panel to the next: all rows of the view times the span, whatever part is looked at."""
        return self.rows * self.span


@record()
class Panel:
    """One panel: columns ``col .. col + cols`` at byte ``offset`` from the stage's first byte, ``bytes`` long."""

    col: int
    cols: int
    offset: int
    bytes: int


def view_bytes(view: ViewLayout) -> int:
    """Bytes that one stage's elements take, padding not counted."""
    return view.rows * view.row_bytes


def stage_stride(view: ViewLayout) -> int:
    """Bytes from one stage to the next."""
    return view.stage_bytes if view.stage_bytes is not None else view.rows * view.row_bytes


def total_bytes(view: ViewLayout) -> int:
    """Bytes from the view's first to one past its last, all stages: padding after the last stage is not counted."""
    return (view.stages - 1) * stage_stride(view) + view_bytes(view)


def end_offset(view: ViewLayout) -> int:
    """The pool offset one past the view's last byte."""
    return view.offset + total_bytes(view)


def view_problem(view: ViewLayout) -> str | None:
    """Why the view cannot be laid out as declared, as one lower-case sentence; ``None`` when it can.

    Covers what every use needs: whole bytes, whole panels, no overlap of stages, and the swizzle's alignment in every
    stage. TMA and descriptors ask for more (``cake_ir.boxes``, ``cake_ir.descriptors``).
    """
    if view.cols * view.elem_bits % 8:
        return f"a row of {view.cols} elements of {view.elem_bits} bits ends inside a byte"
    stride = stage_stride(view)
    if view.stages > 1 and stride < view_bytes(view):
        return f"stage_bytes={stride} is smaller than the {view_bytes(view)} bytes of one stage"
    if view.swizzle is None:
        width = max(1, view.elem_bits // 8)
        if view.offset % width or (view.stages > 1 and stride % width):
            return f"offset {view.offset} and stage distance {stride} must be multiples of the {width}-byte element"
        return None
    if view.swizzle not in SWIZZLES:
        return f'swizzle "{view.swizzle}" is not one of {", ".join(SWIZZLES)}'
    mode = SWIZZLES[view.swizzle]
    if view.row_bytes % mode.span:
        fits = [name for name, m in SWIZZLES.items() if view.row_bytes % m.span == 0]
        hint = f'; swizzle "{fits[0]}" fits' if fits else "; no swizzle fits"
        return f'a row of {view.row_bytes} bytes is not a whole number of {mode.span}-byte panels of swizzle "{mode.name}"{hint}'
    if view.offset % mode.pattern:
        up = -(-view.offset // mode.pattern) * mode.pattern
        return f'offset {view.offset} is not a multiple of {mode.pattern}, where swizzle "{mode.name}" repeats; the next is {up}'
    if view.stages > 1 and stride % mode.pattern:
        up = -(-stride // mode.pattern) * mode.pattern
        return (
            f'stages are {stride} bytes apart, not a multiple of {mode.pattern}, where swizzle "{mode.name}" repeats; '
            f"stage_bytes={up} pads them"
        )
    return None


def panels(view: ViewLayout) -> tuple[Panel, ...]:
    """The view's panels in column order; one for a view without a swizzle."""
    if not view.swizzle:
        return (Panel(0, view.cols, 0, view_bytes(view)),)
    width, stride = view.panel_cols, view.panel_stride
    return tuple(Panel(i * width, width, i * stride, stride) for i in range(view.cols // width))


def linear_offset(view: ViewLayout, stage: int, row: int, col: int) -> int:
    """The address before swizzling: what goes into a descriptor's start field. Bytes from the pool's base."""
    byte = col * view.elem_bits // 8
    base = view.offset + stage * stage_stride(view)
    if not view.swizzle:
        return base + row * view.row_bytes + byte
    span = SWIZZLES[view.swizzle].span
    panel, within = divmod(byte, span)
    return base + panel * view.rows * span + row * span + within


def offset(view: ViewLayout, stage: int, row: int, col: int) -> int:
    """The byte where element (row, col) of ``stage`` starts, from the pool's base.

    For elements narrower than a byte: the byte that holds it (``bit_offset`` gives the bit). Bounds are not checked.
    """
    address = linear_offset(view, stage, row, col)
    return SWIZZLES[view.swizzle].apply(address) if view.swizzle else address


def bit_offset(view: ViewLayout, stage: int, row: int, col: int) -> int:
    """The first bit of element (row, col), counted from the pool's base; little-endian within a byte."""
    return offset(view, stage, row, col) * 8 + col * view.elem_bits % 8


@lru_cache(maxsize=256)
def offset_table(view: ViewLayout, stage: int = 0) -> array[int]:
    """Byte offsets of every element of one stage, row by row (``q``: 64-bit), for readers that gather with NumPy.

    ``numpy.frombuffer(table, dtype="int64").reshape(rows, cols)`` wraps it without a copy. For elements narrower than a
    byte the entries are bit offsets.
    """
    unit = 1 if view.elem_bits % 8 == 0 else 8
    cell = view.elem_bits // 8 if unit == 1 else view.elem_bits
    out: array[int] = array("q")
    base = (view.offset + stage * stage_stride(view)) * unit
    if not view.swizzle:
        out.extend(range(base, base + view.rows * view.cols * cell, cell))
        return out
    if 128 % view.elem_bits:  # elements straddle 16-byte chunks: no run to step along
        out.extend(bit_offset(view, stage, r, c) for r in range(view.rows) for c in range(view.cols))
        return out
    mode = SWIZZLES[view.swizzle]
    per_chunk = 128 // view.elem_bits
    chunks = [linear_offset(view, stage, 0, c) for c in range(0, view.cols, per_chunk)]
    step = per_chunk * cell
    for row in range(view.rows):
        down = row * mode.span
        for chunk in chunks:
            start = mode.apply(chunk + down) * unit
            out.extend(range(start, start + step, cell))
    return out


# --- byte ranges ------------------------------------------------------------------------------------------------------


def merged(ranges: list[Interval]) -> tuple[Interval, ...]:
    """The same bytes as sorted, disjoint, non-touching intervals."""
    ranges.sort()
    out: list[Interval] = []
    for lo, hi in ranges:
        if out and lo <= out[-1][1]:
            if hi > out[-1][1]:
                out[-1] = (out[-1][0], hi)
        elif hi > lo:
            out.append((lo, hi))
    return tuple(out)


def overlap(a: tuple[Interval, ...], b: tuple[Interval, ...]) -> Interval | None:
    """The first byte range in both of two sorted interval lists, or ``None``."""
    i = j = 0
    while i < len(a) and j < len(b):
        lo, hi = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if lo < hi:
            return lo, hi
        if a[i][1] <= b[j][1]:
            i += 1
        else:
            j += 1
    return None


@lru_cache(maxsize=8192)
def atoms(view: ViewLayout, stage: int, row: int, rows: int, col: int, cols: int) -> tuple[Interval, ...]:
    """Byte ranges ``[start, end)`` that rows ``row .. row+rows`` x columns ``col .. col+cols`` of ``stage`` occupy.

    Exact: whole panels give one range each, part of a panel the 16-byte chunks of each row after the permutation (two
    rectangles of one view that share no element share no 16-byte chunk unless a chunk is split between them, in which case
    the bytes still differ). Raises ``LayoutError`` when the rectangle leaves the view.
    """
    if row < 0 or col < 0 or rows < 0 or cols < 0 or row + rows > view.rows or col + cols > view.cols:
        raise LayoutError(f"rows {row}..{row + rows}, columns {col}..{col + cols} leave a view of {view.rows} x {view.cols}")
    if not rows or not cols:
        return ()
    lo, hi = col * view.elem_bits // 8, -(-(col + cols) * view.elem_bits // 8)
    base = view.offset + stage * stage_stride(view)
    if not view.swizzle:
        width = view.row_bytes
        if hi - lo == width:
            return ((base + row * width, base + (row + rows) * width),)
        return merged([(base + r * width + lo, base + r * width + hi) for r in range(row, row + rows)])
    mode = SWIZZLES[view.swizzle]
    span, stride = mode.span, view.rows * mode.span
    out: list[Interval] = []
    for panel in range(lo // span, -(-hi // span)):
        first, last = max(lo - panel * span, 0), min(hi - panel * span, span)
        top = base + panel * stride
        if (first, last) == (0, span):
            out.append((top + row * span, top + (row + rows) * span))
            continue
        for r in range(row, row + rows):
            line = top + r * span
            for chunk in range(first & ~15, last, 16):
                start = mode.apply(line + chunk)
                out.append((start + max(first - chunk, 0), start + min(last - chunk, 16)))
    return merged(out)


# --- bank conflicts ---------------------------------------------------------------------------------------------------


def bank_conflicts(addresses: tuple[int, ...] | list[int], width: int) -> int:
    """The conflict degree of one shared-memory access of a warp: 1 is conflict-free, n takes n times the wavefronts.

    ``addresses`` are the lanes' byte addresses, ``width`` bytes a lane: 16-byte accesses are served 8 lanes at a time,
    8-byte ones 16, narrower ones 32; within a phase every distinct word of one of the 32 four-byte banks costs a
    wavefront, equal words are broadcast.
    """
    lanes = 8 if width >= 16 else 16 if width == 8 else 32
    words_per_lane = max(1, width // 4)
    worst = 1
    for start in range(0, len(addresses), lanes):
        banks: dict[int, set[int]] = {}
        for address in addresses[start : start + lanes]:
            first = address // 4
            for word in range(first, first + words_per_lane):
                banks.setdefault(word & 31, set()).add(word)
        worst = max(worst, max((len(words) for words in banks.values()), default=1))
    return worst


@lru_cache(maxsize=1024)
def ldmatrix_conflicts(view: ViewLayout, row: int = 0, col: int = 0) -> int:
    """Conflict degree of one 8x8 matrix of an ldmatrix or stmatrix at (row, col): 8 rows of 16 bytes, transposed or not."""
    return bank_conflicts([offset(view, 0, row + i, col) for i in range(min(8, view.rows - row))], 16)

"""Fragments as register arrays: how many registers, in which order, and where an element's row and column come from.

The ownership map is `cake_ir.forms`; here it becomes index arithmetic on an unrolled loop variable. All tile forms run through 16-row
blocks, then 8-column blocks, then (row half, column parity).
"""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda.context import Context, Place
from cake_backend.cuda.faults import not_lowered
from cake_ir.dtypes import DTYPES
from cake_ir.forms import Fragment, registers
from cake_ir.span import NOWHERE
from cake_ir.types import FragT


def fragment(t: FragT, warps: int) -> Fragment:
    """The ownership record of a fragment type on a member of `warps` warps."""
    return Fragment(t.form, t.rows, t.cols, DTYPES[t.dtype].bits if t.dtype != "bool" else 1, warps, t.warps, t.chunk or 1, t.parent or "acc")


def elements(t: FragT, warps: int) -> int:
    """Elements a thread holds, one stage."""
    if t.partial in ("argmin", "argmax") and t.form == "rowvec":
        return 2 * registers(fragment(t, warps))  # one chain for even and one for odd columns
    return registers(fragment(t, warps))


def packing(t: FragT) -> int:
    """Elements that share one 32-bit register of the array: narrow types are packed in tiles and vectors of even length."""
    if t.form == "scalar":
        return 1
    return {16: 2, 8: 4}.get(DTYPES[t.dtype].bits, 1) if t.dtype != "bool" else 1


def ctype(t: FragT) -> str:
    """The C type of the array's elements."""
    if packing(t) > 1:
        return "u32"
    return {"i32": "int", "u32": "u32", "bool": "bool"}.get(t.dtype, "float")


def array_length(t: FragT, warps: int) -> int:
    """Length of the register array of one stage."""
    count, p = elements(t, warps), packing(t)
    if count % p:
        not_lowered(f"{count} {t.dtype} values a thread in form `{t.form}`", NOWHERE, "convert to f32 first")
    return count // p


@dataclass(frozen=True, slots=True)
class Index:
    """Position of an element in a fragment's element order: `scale * var + offset`, var the variable of an unrolled loop."""

    var: str
    scale: int = 1
    offset: int = 0

    @property
    def text(self) -> str:
        if not self.var:
            return str(self.offset)
        head = self.var if self.scale == 1 else f"{self.scale} * {self.var}"
        return f"{head} + {self.offset}" if self.offset else head

    def divided(self, by: int) -> str:
        """C text of `self / by`."""
        if not self.var:
            return str(self.offset // by)
        if self.scale % by == 0 and self.offset % by == 0:
            return Index(self.var, self.scale // by, self.offset // by).text
        if by % self.scale == 0 and self.offset < self.scale:
            return f"{self.var} / {by // self.scale}"
        return f"({self.text}) / {by}"

    def modulo(self, by: int) -> str:
        """C text of `self % by`."""
        if not self.var:
            return str(self.offset % by)
        if self.scale % by == 0:
            return str(self.offset % by)
        return f"{self.var} % {by}" if self.text == self.var else f"({self.text}) % {by}"


def tile_columns(t: FragT, warps: int) -> int:
    """8-column blocks that a warp owns of an `acc` or `a` fragment."""
    wn = t.warps[1] if t.warps and t.form == "acc" else 1
    return t.cols // wn // 8


def tile_blocks(t: FragT, warps: int) -> int:
    """16-row blocks that a warp owns."""
    wm = t.warps[0] if t.warps else warps
    return t.rows // wm // 16


def row_slot(t: FragT, warps: int, i: Index) -> str:
    """C text of the index into a rowvec for element i of a tile: two rows a block."""
    blocks, columns = tile_blocks(t, warps), tile_columns(t, warps)
    half = _bit(i, 1)
    if blocks == 1:
        return half
    return f"{i.divided(4 * columns)} * 2 + {_paren(half)}"


def column_slot(t: FragT, warps: int, i: Index) -> str:
    """C text of the index into a colvec for element i of a tile: two columns a block."""
    blocks, columns = tile_blocks(t, warps), tile_columns(t, warps)
    block = i.divided(4)
    if blocks > 1:
        block = f"{_paren(block)} % {columns}"
    parity = _bit(i, 0)
    if block == "0":
        return parity
    return f"{_times(block, 2)} + {_paren(parity)}" if parity != "0" else _times(block, 2)


def _times(text: str, by: int) -> str:
    return f"{text} * {by}" if text.isidentifier() or text.isdigit() else f"{_paren(text)} * {by}"


def _paren(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _bit(i: Index, n: int) -> str:
    """C text of bit n of an index."""
    if not i.var:
        return str(i.offset >> n & 1)
    if i.scale % (2 << n) == 0:
        return str(i.offset >> n & 1)
    if i.scale == 1 << n and i.offset < i.scale:
        return f"{i.var} & 1"
    return f"{i.text} & 1" if n == 0 else f"({i.text} >> {n}) & 1" if not i.offset and i.scale == 1 else f"(({i.text}) >> {n}) & 1"


def warp_row(ctx: Context, t: FragT, parent: str) -> str:
    """C text of the first row that this warp owns, as an int expression; empty for 0."""
    warps = ctx.role.warps
    if t.warps:
        wm = t.warps[0]
        return f"{t.rows // wm} * (int)(warp % {wm}u)" if wm > 1 else ""
    if parent == "rows":
        return "32 * (int)warp" if warps > 1 else ""
    return "16 * (int)warp" if warps > 1 else ""


def warp_col(t: FragT) -> str:
    """C text of the first column that this warp owns; empty for 0."""
    if not t.warps or t.warps[1] == 1 or t.form == "a":
        return ""
    wm, wn = t.warps
    return f"{t.cols // wn} * (int)(warp / {wm}u)"


def rowvec_row(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the row (relative to the fragment) of element i of a rowvec."""
    step = 16 if t.warps else 16 * ctx.role.warps
    total = elements(t.with_(partial=None), ctx.role.warps)
    block = "" if total <= 2 else f"{step} * ({i.divided(2)})"
    half = i.modulo(2) if total > 2 else i.text
    return " + ".join(x for x in (warp_row(ctx, t, "acc"), block, f"8 * {_paren(half)}", "(int)(lane >> 2)") if x)


def colvec_col(t: FragT, i: Index) -> str:
    """C text of the column (relative to the fragment) of element i of a colvec."""
    return " + ".join(x for x in (warp_col(t), f"8 * ({i.divided(2)}) + {_paren(i.modulo(2))}", "2 * (int)(lane & 3u)") if x)


def tile_row(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the row of element i of an `acc` or `a` tile."""
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    step = 16 if t.warps else 16 * ctx.role.warps
    block = "" if blocks == 1 else f"{step} * ({i.divided(4 * columns)})"
    return " + ".join(x for x in (warp_row(ctx, t, "acc"), block, f"8 * ({_bit(i, 1)})", "(int)(lane >> 2)") if x)


def tile_col(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the column of element i of an `acc` or `a` tile."""
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    block = i.divided(4) if blocks == 1 else f"({i.divided(4)}) % {columns}"
    return " + ".join(x for x in (warp_col(t), f"8 * ({block}) + ({_bit(i, 0)})", "2 * (int)(lane & 3u)") if x)


def declare(ctx: Context, name: str, t: FragT) -> Place:
    """Declare the register array of a place and return it."""
    length = array_length(t, ctx.role.warps)
    place = Place(ctx.role.names.take(name), t, length)
    ctx.out.line(f"{ctype(t)} {place.name}[{length * t.stages}];")
    return place

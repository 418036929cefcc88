"""Fragments as register arrays: how many registers, in which order, and where an element's row and column come from.

The ownership map is `cake_ir.forms`; here it becomes index arithmetic on unrolled loop variables. All tile forms run through 16-row
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
    if t.form == "scalar" or (t.form in ("rowvec", "colvec") and (DTYPES[t.dtype].bits == 8 or t.parent == "vec")):
        return 1
    return {16: 2, 8: 4}.get(DTYPES[t.dtype].bits, 1) if t.dtype != "bool" else 1


def ctype(t: FragT) -> str:
    """The C type of the array's elements."""
    if packing(t) > 1:
        return "u32"
    return {"i32": "int", "u32": "u32", "bool": "bool", "i64": "i64", "u64": "u64"}.get(t.dtype, "float")


def operand_order(t: FragT) -> int:
    """Neighbouring columns that a thread has of an `a` or `b` fragment: 4 of 8-bit elements, 1 of tf32, else 2 (values computed from 16-bit ones)."""
    return 4 if t.dtype != "bool" and DTYPES[t.dtype].bits == 8 else 1 if t.dtype == "tf32" else 2


def array_length(t: FragT, warps: int) -> int:
    """Length of the register array of one stage."""
    count, p = elements(t, warps), packing(t)
    if count % p:
        not_lowered(f"{count} {t.dtype} values a thread in form `{t.form}`", NOWHERE, "convert to f32 first")
    return count // p


@dataclass(frozen=True, slots=True)
class Term:
    """`scale * var`, where `var` is an unrolled loop's variable that runs from 0 to `count` (0: not known) exclusively."""

    var: str
    scale: int
    count: int = 0

    @property
    def text(self) -> str:
        return self.var if self.scale == 1 else f"{self.scale} * {self.var}"

    @property
    def largest(self) -> int | None:
        return self.scale * (self.count - 1) if self.count else None


@dataclass(frozen=True, slots=True)
class Index:
    """Position of an element in a fragment's element order: a sum of loop variables and a constant.

    Division and remainder are simplified as far as the scales and ranges of the variables allow, so that the text reads like what one
    would write by hand.
    """

    terms: tuple[Term, ...] = ()
    offset: int = 0

    def plus(self, offset: int) -> Index:
        return Index(self.terms, self.offset + offset)

    @property
    def text(self) -> str:
        parts = [t.text for t in self.terms] + ([str(self.offset)] if self.offset else [])
        return " + ".join(parts) or "0"

    def _split(self, by: int) -> tuple[Index, Index]:
        """(multiple of `by`, rest): the rest's terms have scales that `by` does not divide."""
        whole = tuple(t for t in self.terms if t.scale % by == 0)
        rest = tuple(t for t in self.terms if t.scale % by)
        return Index(whole, self.offset - self.offset % by), Index(rest, self.offset % by)

    def _below(self, limit: int) -> bool:
        """Whether the value is known to be below `limit`; a sole variable whose scale divides the limit cannot carry an offset over."""
        total = self.offset
        for t in self.terms:
            if t.largest is None:
                return False
            total += t.largest
        return total < limit

    def divided(self, by: int) -> str:
        """C text of `self / by`."""
        return self.quotient(by).text if self.exact(by) else self._general(by)

    def exact(self, by: int) -> bool:
        """Whether `self / by` is a sum of loop variables and a constant again."""
        return by == 1 or self._split(by)[1]._below(by)

    def quotient(self, by: int) -> Index:
        """`self / by`, which must be exact."""
        whole = self._split(by)[0]
        return Index(tuple(Term(t.var, t.scale // by, t.count) for t in whole.terms), whole.offset // by)

    def _general(self, by: int) -> str:
        sole = self.terms[0] if len(self.terms) == 1 else None
        if sole is not None and by % sole.scale == 0 and self.offset < sole.scale:
            return f"{sole.var} / {by // sole.scale}"
        return f"({self.text}) / {by}" if " " in self.text else f"{self.text} / {by}"

    def modulo(self, by: int) -> str:
        """C text of `self % by`."""
        if by == 1:
            return "0"
        rest = self._split(by)[1]
        if rest._below(by):
            return rest.text
        return f"({rest.text}) % {by}" if " " in rest.text else f"{rest.text} % {by}"

    def bit(self, n: int) -> str:
        """C text of bit n."""
        rest = self._split(2 << n)[1]
        if rest._below(2 << n) and rest.exact(1 << n):
            return rest.quotient(1 << n).text
        if not n:
            return f"({rest.text}) & 1" if " " in rest.text else f"{rest.text} & 1"
        sole = rest.terms[0] if len(rest.terms) == 1 else None
        if sole is not None and sole.scale == 1 << n and rest.offset < 1 << n:
            return f"{sole.var} & 1"
        return f"(({rest.text}) >> {n}) & 1" if " " in rest.text else f"({rest.text} >> {n}) & 1"


def loop(var: str, scale: int = 1, offset: int = 0, count: int = 0) -> Index:
    """`scale * var + offset`."""
    return Index((Term(var, scale, count),) if var else (), offset)


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
    half = i.bit(operand_order(t).bit_length() - 1 if t.form == "a" else 1)
    return half if blocks == 1 else sum_text(times_text(i.divided(4 * columns), 2), _paren(half))


def run_slot(t: FragT, warps: int, i: Index) -> str:
    """C text of the run that element i of a `vec` lies in: the index into a rowvec that belongs to it."""
    return "0" if elements(t, warps) == (t.chunk or 1) else i.divided(t.chunk or 1)


def column_slot(t: FragT, warps: int, i: Index) -> str:
    """C text of the index into a colvec for element i of a tile: two columns a block."""
    return sum_text(times_text(_column_block(t, warps, i), 2), _paren(i.bit(0)))


def _column_block(t: FragT, warps: int, i: Index) -> str:
    if tile_blocks(t, warps) == 1:
        return i.divided(4)
    columns = tile_columns(t, warps)
    return i.quotient(4).modulo(columns) if i.exact(4) else f"{_paren(i.divided(4))} % {columns}"


def sum_text(*parts: str) -> str:
    """C text of a sum; empty and zero parts are left out."""
    return " + ".join(p for p in parts if p not in ("", "0")) or "0"


def times_text(text: str, by: int) -> str:
    """C text of `by * text`."""
    return "0" if text == "0" else f"{by} * {_paren(text)}"


def _paren(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


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
    if t.parent == "vec":
        run = "(int)thread" if elements(t, ctx.role.warps) == 1 else sum_text(times_text(i.text, ctx.role.threads), "(int)thread")
        return run if t.chunk == 1 else f"{_paren(run) if run == '(int)thread' else f'({run})'} / {t.chunk}"
    if t.parent == "b":
        first = f"{t.rows // t.warps[1]} * (int)(warp / {t.warps[0]}u)" if t.warps and t.warps[1] > 1 else ""
        return sum_text(first, times_text(i.text, 8), "(int)(lane >> 2)")
    if t.parent == "rows":
        block = "" if t.rows == 32 * ctx.role.warps else times_text(i.text, 32 * ctx.role.warps)
        return sum_text(warp_row(ctx, t, "rows"), block, "(int)lane")
    step = 16 if t.warps else 16 * ctx.role.warps
    one = elements(t.with_(partial=None), ctx.role.warps) <= 2
    block = "" if one else times_text(i.divided(2), step)
    half = i.text if one else i.modulo(2)
    return sum_text(warp_row(ctx, t, "acc"), block, times_text(half, 8), "(int)(lane >> 2)")


def run_exists(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the test that element i of the row vector of a `vec` belongs to a row; empty where all do."""
    runs = t.rows * (t.chunk or 1)
    if t.form != "rowvec" or t.parent != "vec" or runs % ctx.role.threads == 0:
        return ""
    return f"{_paren(i.text)} * {ctx.role.threads} + (int)thread < {runs}"


def first_of_row(ctx: Context, t: FragT, i: str) -> str:
    """C text of the test that picks one of the lanes that share a row; empty where no two do."""
    if t.parent != "vec":
        return "" if t.parent == "rows" else "(lane & 3u) == 0"
    runs, per = t.rows * (t.chunk or 1), t.chunk or 1
    tests = [f"(lane & {per - 1}u) == 0"] if per > 1 else []
    if runs % ctx.role.threads:
        tests.append(f"{i} * {ctx.role.threads} + (int)thread < {runs}")
    return " && ".join(tests)


def colvec_col(t: FragT, i: Index) -> str:
    """C text of the column (relative to the fragment) of element i of a colvec."""
    if t.parent == "rows":
        return i.text
    return sum_text(warp_col(t), times_text(i.divided(2), 8), _paren(i.modulo(2)), "2 * (int)(lane & 3u)")


def tile_row(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the row of element i of an `acc` or `a` tile."""
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    step = 16 if t.warps else 16 * ctx.role.warps
    block = "" if blocks == 1 else times_text(i.divided(4 * columns), step)
    return sum_text(warp_row(ctx, t, "acc"), block, times_text(i.bit(1), 8), "(int)(lane >> 2)")


def tile_col(ctx: Context, t: FragT, i: Index) -> str:
    """C text of the column of element i of an `acc` or `a` tile."""
    return sum_text(warp_col(t), times_text(_column_block(t, ctx.role.warps, i), 8), _paren(i.bit(0)), "2 * (int)(lane & 3u)")


def declare(ctx: Context, name: str, t: FragT) -> Place:
    """Declare the register array of a place and return it."""
    length = array_length(t, ctx.role.warps)
    place = Place(ctx.role.names.take(name), t, length)
    ctx.out.line(f"{ctype(t)} {place.name}[{length * t.stages}];")
    return place

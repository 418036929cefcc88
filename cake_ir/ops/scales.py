"""`lm.scales`: how tensor memory or a fragment holds the block scales of an operand of `lm.mma`.

Scales come in words of four: those of four consecutive blocks of K in one row. A row of a fragment has one word (or one scale), tensor memory
has them in *atoms* of 128 rows: 32 lanes, repeated in each quarter of the lanes, by four columns, column j for rows 32 j to 32 j + 31. The
atoms of one word lie side by side, 128 rows each, those of the next word behind them.
"""

from __future__ import annotations

from cake_ir.dtypes import DTYPES
from cake_ir.ops.spec import Call, OpSpec, P
from cake_ir.program import Expr, Operand
from cake_ir.types import FragT, ScalesT, TmemT, Type, ViewT

SCALES: dict[str, tuple[str, ...]] = {"block": ("16", "32", "128"), "dtype": ("ue8m0", "e4m3", "f32"), "layout": ("tmem_128x4", "frag_row", "rowvec")}
"""What block scales may be declared as: elements a scale, their dtype, and how they lie."""

WORD = 4
"""Scales of one row in one 32-bit word."""

ATOM_ROWS = 128
"""Rows of one atom of tensor memory."""

ATOM = ATOM_ROWS * WORD // 32
"""Scales of one atom in a lane: its columns as a region of bytes counts them."""


def atoms(rows: int) -> int:
    """Atoms side by side that hold one word of each of so many rows."""
    return -(-rows // ATOM_ROWS)


def region_of(e: Operand) -> TmemT | None:
    """The tensor memory that an operand names, as it is or as scales; None where it names none."""
    t = e.type if isinstance(e, Expr) else None
    t = t.source if isinstance(t, ScalesT) else t
    return t if isinstance(t, TmemT) else None


def scales_at_once(dtype: str, block: int) -> int:
    """Scales of a row that one instruction takes for operands of `dtype`: it multiplies 64 elements of 4 bits, else 32."""
    return max(1, (64 if DTYPES[dtype].bits == 4 else 32) // block)


def first_of(scales: Expr) -> Expr:
    """The number of the first scale in its word, of an `lm.scales` expression."""
    return scales.args[1]


def _scales(call: Call) -> Type:
    for option, known in SCALES.items():
        if str(call.attrs[option]) not in known:
            call.fault("N061", f"`lm.scales` has no {option} {call.attrs[option]}", option, help=f"one of: {' '.join(known)}", expected=known, found=str(call.attrs[option]))
    x, dtype, layout = call.type_of("x"), str(call.attrs["dtype"]), str(call.attrs["layout"])
    if isinstance(x, ViewT) or not isinstance(x, (TmemT, FragT)):
        call.fault("D039", f"an MMA reads block scales from tensor memory or from registers, not from {x}", "x",
                   help="bring them to tensor memory with `lm.tmem_copy(region, view)`, or load them: `view.load(form=\"rowvec\", like=..)`")  # fmt: skip
    if isinstance(x, TmemT) != (layout == "tmem_128x4"):
        where = "tensor memory" if isinstance(x, TmemT) else "a fragment"
        wanted = "tmem_128x4" if isinstance(x, TmemT) else "frag_row"
        call.fault("D039", f"scales in {where} do not lie in layout `{layout}`", "layout", help=f"write `layout=\"{wanted}\"`", expected=wanted, found=layout)
    kinds = (dtype, "u8") if isinstance(x, TmemT) or dtype == "f32" else (dtype, "u8", "u32")
    if x.dtype not in kinds:
        call.fault("D003", f"scales of {dtype} are held as {' or '.join(kinds)}, found {x.dtype}", "x", expected=list(kinds), found=x.dtype)
    if isinstance(x, TmemT):
        if x.lanes != ATOM_ROWS or x.cols % ATOM:
            call.fault("D039", f"scales lie in atoms of 128 lanes and {ATOM} bytes a lane, `{x.tmem}` has {x.lanes} x {x.cols} here", "x",
                       help=f"take `.cols(lo, {max(ATOM, x.cols - x.cols % ATOM)})` of a region with 128 lanes", expected=ATOM, found=x.cols)  # fmt: skip
    elif x.form != "rowvec":
        call.fault("D002", f"scales of rows are a row vector, found form `{x.form}`", "x", help="load them with `form=\"rowvec\", like=a`", expected="rowvec", found=x.form)
    elif x.partial:
        call.fault("D007", f"a partial `{x.partial}` is no scale before `lm.finish`", "x", help="finish it: `lm.finish(..)`")
    return ScalesT(x, int(call.attrs["block"]), dtype, layout)  # type: ignore[arg-type]  # an integer by its kind


def check_scales(call: Call, m: int, n: int, k: int, a: Type, b: Type) -> None:
    """Refuse the scales of a product of `m` x `n` x `k` that do not cover its operands; nothing where it has none."""
    scales = {name: t for name in ("scale_a", "scale_b") if isinstance(t := call.type_of(name), ScalesT)}
    if not scales:
        return
    if len(scales) == 1:
        (given,) = scales
        missing = "scale_b" if given == "scale_a" else "scale_a"
        call.fault("D039", f"`{given}` is given without `{missing}`: the instruction scales both operands or none", given,
                   help="give the other operand scales too; ones, where it has none of its own")  # fmt: skip
    one, other = scales["scale_a"], scales["scale_b"]
    for what in ("block", "dtype", "layout"):
        if getattr(one, what) != getattr(other, what):
            call.fault("D039", f"the scales of `a` have {what} {getattr(one, what)}, those of `b` {getattr(other, what)}", "scale_b",
                       related=((call.spans["scale_a"], "of `a`"),), help="one instruction takes both alike", expected=getattr(one, what), found=getattr(other, what))  # fmt: skip
    for name, rows, operand in (("scale_a", m, a), ("scale_b", n, b)):
        _covers(call, name, scales[name], rows, k, operand)


def _covers(call: Call, name: str, t: ScalesT, rows: int, k: int, operand: Type) -> None:
    """Whether one operand's scales are those of all its rows, and of all of K from the first on."""
    if k % t.block:
        call.fault("D039", f"K = {k} of `lm.mma` ends inside a block of {t.block} elements that share a scale", name, help="make K a multiple of the block", expected=t.block, found=k)
    count = k // t.block
    e = call.operands[name]
    assert isinstance(e, Expr)
    start = first_of(e)
    first = int(start.attrs["value"]) if start.op == "const" else None  # type: ignore[call-overload]  # a number by its kind
    at_once = scales_at_once(getattr(operand, "dtype", ""), t.block)
    if first is not None and (not 0 <= first < WORD or first % at_once):
        call.fault("D039", f"`first` is {first}: an instruction that takes {at_once} scale{'s' if at_once > 1 else ''} of a row starts at "
                   f"{' or '.join(map(str, range(0, WORD, at_once)))} of a word of four", name, help="number the scales of a word from 0", found=first)  # fmt: skip
    from_there = f" from number {first} on" if first else ""
    if isinstance(t.source, TmemT):
        words = 1 if first is None else -(-(first + count) // WORD)
        need = ATOM * atoms(rows) * words
        if t.source.cols != need or (first is None and count > WORD):
            call.fault("D039", f"{count} scales{from_there} of {rows} rows fill {need} bytes a lane, `{t.source.tmem}` gives {t.source.cols} here: one scale is for {t.block} elements of K = {k}", name,
                       help=f"an atom of {ATOM} bytes a lane holds four scales of 128 rows: take `.cols(lo, {need})`", expected=need, found=t.source.cols)  # fmt: skip
        return
    room = WORD if t.source.dtype == "u32" else 1
    if (first or 0) + count > room:
        call.fault("D039", f"{count} scales{from_there} of a row are more than the {room} that each element of this {t.source} holds: one is for {t.block} elements of K = {k}", name,
                   help="load them as u32, four in a word, or take a shorter slice of K" if room == 1 else "take a shorter slice of K", expected=room, found=count)  # fmt: skip
    if t.source.rows != rows:
        call.fault("D039", f"`lm.mma` has {rows} rows of `{name[-1]}`, their scales are {t.source.rows}", name, expected=rows, found=t.source.rows)
    mine = ("b",) if name == "scale_b" else ("acc", "a")
    split = operand.warps if isinstance(operand, FragT) else None
    if isinstance(operand, FragT) and (t.source.parent not in mine or t.source.warps != split):
        call.fault("D002", f"the scales of `{name[-1]}` follow the rows of a fragment in form `{t.source.parent}`, other threads hold those of `{name[-1]}`", name,
                   help=f"load them `like=` the fragment given as `{name[-1]}`", expected=mine[-1], found=t.source.parent)  # fmt: skip


SPECS = (
    OpSpec("scales", "mma", (P("x", "view|value|tmem"), P("block", "int"), P("dtype", "dtype"), P("layout", "str"), P("first", "scalar", 0)), _scales,
           pure=True, doc="Declare how tensor memory or a row vector holds block scales for `scale_a=` and `scale_b=` of `lm.mma`; `first` is the number of the first one in its word of four."),
)  # fmt: skip

__all__ = ["ATOM", "SCALES", "SPECS", "WORD", "atoms", "check_scales", "first_of", "region_of", "scales_at_once"]

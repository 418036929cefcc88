"""`lm.scan`: inclusive prefixes along the rows or columns that the lanes of one warp hold.

A thread's neighbours are combined first, then the lanes (the totals of those in front, by doubling distances), then what came before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from cake_backend.cuda.context import Context, Place
from cake_backend.cuda.elementwise import element, kind_of, prepared
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, Term, elements, tile_blocks, tile_columns
from cake_backend.cuda.positions import TILES, At
from cake_backend.cuda.reduce import combine
from cake_backend.cuda.scalars import CTYPE
from cake_ir.program import Expr
from cake_ir.types import FragT

_NEUTRAL = {
    ("add", "float"): "0.0f", ("max", "float"): "__int_as_float(0xff800000)", ("min", "float"): "__int_as_float(0x7f800000)",
    ("add", "int"): "0", ("max", "int"): "(-2147483647 - 1)", ("min", "int"): "2147483647",
    ("add", "u32"): "0u", ("max", "u32"): "0u", ("min", "u32"): "0xffffffffu",
}  # fmt: skip


class _Lanes:
    """Lanes that share a line: `count` of them, `step` apart, the first where the bits of `mask` are zero."""

    def __init__(self, ctx: Context, op: str, dtype: str, count: int, step: int) -> None:
        self.ctx, self.op, self.kind, self.count, self.step = ctx, op, kind_of(dtype), count, step
        self.ctype = CTYPE[dtype]
        self.neutral = _NEUTRAL[op, self.ctype]
        self.mask = (count - 1) * step

    def combine(self, a: str, b: str) -> str:
        return combine(self.op, self.kind, a, b)

    def before(self, total: str) -> str:
        """Emit the scan of the lanes' totals; C text of what the lanes in front add up to. `sum_` then holds the inclusive value."""
        out, where = self.ctx.out, f"(lane & {self.mask}u)"
        out.line(f"{self.ctype} sum_ = {total};")
        if self.count == 1:
            return self.neutral
        d = 1
        while d < self.count:
            out.line(f"{{ const {self.ctype} near_ = __shfl_up_sync(0xffffffffu, sum_, {d * self.step}); if ({where} >= {d * self.step}u) sum_ = {self.combine('near_', 'sum_')}; }}")
            d *= 2
        out.line(f"{self.ctype} front_ = __shfl_up_sync(0xffffffffu, sum_, {self.step});")
        out.line(f"if ({where} == 0) front_ = {self.neutral};")
        return "front_"

    def carry(self) -> None:
        """Emit the addition of all lanes' totals to `carry_`."""
        last = "sum_" if self.count == 1 else f"__shfl_sync(0xffffffffu, sum_, (int)(lane | {self.mask}u))"
        self.ctx.out.line(f"carry_ = {self.combine('carry_', last)};")


def scan_into(ctx: Context, target: Place, e: Expr) -> None:
    """Write the prefixes of an expression to a place."""
    x = prepared(ctx, e.args[0])
    t, op = x.type, str(e.attrs["op"])
    assert isinstance(t, FragT)
    if t.form in TILES and e.attrs["axis"] == 1:
        if t.warps and t.warps[1] > 1:
            not_lowered("a scan along the columns of a tile that several warps share", e.span)
        _along_columns(ctx, target, x, t, _Lanes(ctx, op, t.dtype, 4, 1))
    elif t.form in TILES:
        if (t.warps[0] if t.warps else ctx.role.warps) > 1:
            not_lowered("a scan along the rows of a tile that several warps share", e.span)
        _along_rows(ctx, target, x, t, _Lanes(ctx, op, t.dtype, 8, 4))
    elif t.form == "vec":
        _runs(ctx, target, x, t, op)
    else:
        not_lowered(f"a scan of form `{t.form}`", e.span)


def _along_columns(ctx: Context, target: Place, x: Expr, t: FragT, lanes: _Lanes) -> None:
    """A thread has two neighbouring columns of each block of eight, a quad the whole block."""
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    for block in range(blocks):
        with ctx.out.unrolled("r_", 2):
            ctx.out.line(f"{lanes.ctype} carry_ = {lanes.neutral};")
            with ctx.out.unrolled("j_", columns):
                at = [Index((Term("j_", 4, columns), Term("r_", 2, 2)), 4 * columns * block + p) for p in (0, 1)]
                left, right = (element(ctx, x, At(t, i)) for i in at)
                ctx.out.line(f"const {lanes.ctype} left_ = {left}, right_ = {right};")
                front = lanes.before(lanes.combine("left_", "right_"))
                ctx.out.line(f"const {lanes.ctype} first_ = {lanes.combine(lanes.combine('carry_', front), 'left_')};")
                ctx.out.line(f"{target.name}[{at[0].text}] = first_;")
                ctx.out.line(f"{target.name}[{at[1].text}] = {lanes.combine('first_', 'right_')};")
                lanes.carry()


def _along_rows(ctx: Context, target: Place, x: Expr, t: FragT, lanes: _Lanes) -> None:
    """Eight rows lie on eight lanes; halves of 16 rows and then blocks follow each other."""
    blocks, columns = tile_blocks(t, ctx.role.warps), tile_columns(t, ctx.role.warps)
    with ctx.out.unrolled("j_", columns), ctx.out.unrolled("p_", 2):
        ctx.out.line(f"{lanes.ctype} carry_ = {lanes.neutral};")
        with ctx.out.unrolled("m_", blocks) if blocks > 1 else nullcontext(), ctx.out.unrolled("r_", 2):
            terms = (*((Term("m_", 4 * columns, blocks),) if blocks > 1 else ()), Term("j_", 4, columns), Term("r_", 2, 2), Term("p_", 1, 2))
            at = Index(terms)
            ctx.out.line(f"const {lanes.ctype} own_ = {element(ctx, x, At(t, at))};")
            front = lanes.before("own_")
            ctx.out.line(f"{target.name}[{at.text}] = {lanes.combine(lanes.combine('carry_', front), 'own_')};")
            lanes.carry()


def _runs(ctx: Context, target: Place, x: Expr, t: FragT, op: str) -> None:
    """Runs of a `vec`: a row of a matrix lies on a few lanes, a single row on the lanes of the only warp, run after run."""
    chunk, one_row = t.chunk or 1, t.rows == 1
    if one_row and ctx.role.warps > 1:
        not_lowered("a scan of a `vec` over several warps", x.span)
    lanes = _Lanes(ctx, op, t.dtype, 32 if one_row else t.cols // chunk, 1)
    runs = elements(t, ctx.role.warps) // chunk
    with ctx.out.block(""):
        if one_row:
            ctx.out.line(f"{lanes.ctype} carry_ = {lanes.neutral};")
        with ctx.out.unrolled("r_", runs) if runs > 1 else nullcontext():
            base = Index((Term("r_", chunk, runs),) if runs > 1 else ())
            ctx.out.line(f"{lanes.ctype} own_[{chunk}];")
            _prefixes(ctx, x, t, base, chunk, lanes.combine)
            front = lanes.before(f"own_[{chunk - 1}]")
            ctx.out.line(f"const {lanes.ctype} base_ = {lanes.combine('carry_', front) if one_row else front};")
            with ctx.out.unrolled("k_", chunk):
                at = Index((*base.terms, Term("k_", 1, chunk)))
                ctx.out.line(f"{target.name}[{at.text}] = {lanes.combine('base_', 'own_[k_]')};")
            if one_row:
                lanes.carry()


def _prefixes(ctx: Context, x: Expr, t: FragT, base: Index, chunk: int, join: Callable[[str, str], str]) -> None:
    """A thread's own prefixes of one run."""
    ctx.out.line(f"own_[0] = {element(ctx, x, At(t, base))};")
    if chunk > 1:
        with ctx.out.unrolled("k_", chunk, 1):
            at = Index((*base.terms, Term("k_", 1, chunk)))
            ctx.out.line(f"own_[k_] = {join('own_[k_ - 1]', element(ctx, x, At(t, at)))};")

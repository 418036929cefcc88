"""cp.async: 16-byte pieces by the member's threads, of a rectangle or of rows by number; what is missing becomes zero."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from cake_backend.cuda import tma
from cake_backend.cuda.addresses import at_stage, chunk_address, element_address, rect
from cake_backend.cuda.congruence import assumed_divisor, multiple_of
from cake_backend.cuda.context import Context, Rect
from cake_backend.cuda.elementwise import element, prepared, resolve
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, elements, loop, rowvec_row
from cake_backend.cuda.global_memory import chunk_mask
from cake_backend.cuda.globals import extent, pointer, stride
from cake_backend.cuda.positions import At
from cake_backend.cuda.scalars import constant, factor, scalar
from cake_backend.cuda.shared_memory import LOAD_I32
from cake_ir.layout import ViewLayout
from cake_ir.program import Expr, Op
from cake_ir.types import FragT, ViewT


class _Copy:
    """What both copies share: the rectangle, the tensor, and the bytes of one piece that exist."""

    def __init__(self, ctx: Context, op: Op) -> None:
        view, stage, coords = op.operands["view"], op.operands.get("stage"), op.operands["coords"]
        assert isinstance(view, Expr) and isinstance(coords, tuple)
        self.ctx, self.op, self.coords, self.tensor = ctx, op, coords, str(op.attrs["tensor"])
        self.rect: Rect = at_stage(ctx, view, stage if isinstance(stage, Expr) else None)
        self.layout: ViewLayout = ctx.layouts[self.rect.view]
        if self.rect.transposed:
            not_lowered("`cp_async` into a transposed view", op.span)
        self.size = self.layout.elem_bits // 8
        self.per = 16 // self.size
        if self.rect.cols % self.per or not multiple_of(ctx.program, ctx.role.role.name, coords[0], self.per):
            help_ = f"write the first column as a multiple of {self.per}, or say so with `lm.assume(x % {self.per} == 0)`"
            not_lowered(f"`cp_async` of columns that are not whole 16-byte chunks of {self.per}", op.span, help_)
        ctx.need_alignment(self.tensor, op.span)
        rank = len(coords)
        self.chunks = self.rect.cols // self.per
        self.row_axis = rank - 1 if op.name == "cp_async_rows" else 1  # rows by number are those of the outermost axis
        self.pitch = stride(ctx, self.tensor, rank - 1 - self.row_axis) if rank > 1 else "0u"
        self.inner, self.outer = extent(ctx, self.tensor, rank - 1), extent(ctx, self.tensor, rank - 1 - self.row_axis) if rank > 1 else "1"
        declared = ctx.program.tensors[self.tensor].extents
        last = declared[-1] if declared else None
        self.whole = last % self.per == 0 if isinstance(last, int) else last is not None and assumed_divisor(ctx.program, last) % self.per == 0
        self.limit = self.inner  # the first column that is not copied

    def bytes_(self, tests: list[str]) -> str:
        """C text of how many of a piece's 16 bytes exist, at (`at_row_`, `at_col_`); `tests` must hold for any."""
        rows = " && ".join([*tests, *(self.planes()), f"(u32)at_row_ < (u32){self.outer}" if self.op.name == "cp_async_rows" else f"at_row_ < {self.outer}"])
        if self.whole:
            return f"{rows} && at_col_ < {self.limit} ? 16u : 0u"
        return f"{rows} ? (u32)(min(max({self.limit} - at_col_, 0), {self.per}) * {self.size}) : 0u"

    def beyond(self) -> list[tuple[int, Expr]]:
        """The axes that are neither columns nor rows, with their coordinates, those that are 0 left out."""
        return [(axis, c) for axis, c in enumerate(self.coords) if axis not in (0, self.row_axis) and constant(c) != 0]

    def planes(self) -> list[str]:
        """Tests of the coordinates beyond rows and columns."""
        rank = len(self.coords)
        return [f"{scalar(self.ctx, c)} < {extent(self.ctx, self.tensor, rank - 1 - axis)}" for axis, c in self.beyond()]

    def source(self, row: str = "at_row_") -> str:
        """C text of a piece's address."""
        rank, ctx = len(self.coords), self.ctx
        far = [
            f"(u64)({scalar(ctx, c)}) * {stride(ctx, self.tensor, rank - 1 - axis)}" for axis, c in self.beyond()
        ]
        return " + ".join([pointer(ctx, self.tensor), *far, f"(u64){row} * {self.pitch}", "at_col_"])

    def origin(self) -> None:
        """Declare the first row and column."""
        col, row = self.coords[0], self.coords[self.row_axis :]
        self.ctx.out.line(f"const int first_row_ = {scalar(self.ctx, row[0]) if row else 0}, first_col_ = {scalar(self.ctx, col)};")


def cp_async(ctx: Context, op: Op) -> None:
    """`view.cp_async`: pieces dealt to the member's threads in turn."""
    c = _Copy(ctx, op)
    tests = []
    mask = op.operands.get("mask")
    if isinstance(mask, Expr):
        t = FragT("vec", c.rect.rows, c.rect.cols, ctx.program.views[c.rect.view].dtype, chunk=c.per)
        mask = resolve(ctx, mask)
        if mask.op != "in_bounds":
            not_lowered("`cp_async` with a mask other than `lm.in_bounds`", op.span)
        if test := chunk_mask(ctx, mask, t, c.per):
            tests = [test]
        else:  # a piece may be parted: its bytes end where the mask does
            tests, c.whole, c.limit = [f"row_ < {factor(ctx, mask.args[1])}"], False, f"min({c.inner}, first_col_ + {scalar(ctx, mask.args[2])})"
    total, threads = c.rect.rows * c.chunks, ctx.role.threads
    with ctx.out.block(""):
        c.origin()
        with ctx.out.unrolled("i_", -(-total // threads)):
            ctx.out.line(f"const u32 id_ = thread + {threads}u * i_, row_ = id_ / {c.chunks}u, chunk_ = id_ % {c.chunks}u;")
            ctx.out.line(f"const int at_row_ = first_row_ + (int)row_, at_col_ = first_col_ + {c.per} * (int)chunk_;")
            here = [x.replace("row_ <", "(int)row_ <").replace("col_ <", f"{c.per} * (int)chunk_ <") for x in tests]
            call = f"{ctx.use(tma.CP_ASYNC)}({chunk_address(c.rect, c.layout, 'row_', 'chunk_')}, {c.source()}, {c.bytes_(here)});"
            ctx.out.line(call if total % threads == 0 else f"if (id_ < {total}u) {call}")


def cp_async_rows(ctx: Context, op: Op) -> None:
    """`view.cp_async_rows`: the same, with the tensor's row out of a list; a row vector of a tile is copied by the quad that shares its rows."""
    c = _Copy(ctx, op)
    rows = op.operands["rows"]
    assert isinstance(rows, Expr)
    with ctx.out.block(""):
        c.origin()
        if isinstance(rows.type, FragT) and rows.type.parent != "vec":
            _by_quads(ctx, c, prepared(ctx, rows), rows.type)
        else:
            _dealt(ctx, c, rows)


def _dealt(ctx: Context, c: _Copy, rows: Expr) -> None:
    total, threads = c.rect.rows * c.chunks, ctx.role.threads
    count = -(-total // threads)
    if isinstance(rows.type, ViewT):
        listed = rect(ctx, rows)
        number = f"{ctx.use(LOAD_I32)}({element_address(listed, ctx.layouts[listed.view], '0u', 'row_')})"
    else:
        rows = prepared(ctx, rows)
        assert isinstance(rows.type, FragT)
        number = element(ctx, rows, At(rows.type, loop("i_", 1, 0, count) if count > 1 else Index()))
    with ctx.out.unrolled("i_", count):
        ctx.out.line(f"const u32 id_ = thread + {threads}u * i_, row_ = id_ / {c.chunks}u, chunk_ = id_ % {c.chunks}u;")
        with ctx.out.block(f"if (id_ < {total}u)") if total % threads else nullcontext():
            _piece(ctx, c, number)


def _by_quads(ctx: Context, c: _Copy, rows: Expr, t: FragT) -> None:
    """Each quad copies the rows whose numbers it holds; warps that share rows share their pieces, four at a time."""
    wm, wn = t.warps or (1, 1)
    if wn > 1 and t.parent == "b":
        not_lowered("a gather by rows of a `b` that is split over warps", rows.span)
    count, each = elements(t, ctx.role.warps), -(-c.chunks // (4 * wn))
    with ctx.out.unrolled("r_", count):
        at = loop("r_", 1, 0, count)
        ctx.out.line(f"const u32 row_ = (u32)({rowvec_row(ctx, t, at)});")
        ctx.out.line(f"const int number_ = {element(ctx, rows, At(t, at))};")
        with ctx.out.unrolled("i_", each):
            first = f"(lane & 3u) + 4u * (warp / {wm}u)" if wn > 1 else "(lane & 3u)"
            ctx.out.line(f"const u32 chunk_ = {first} + {4 * wn}u * i_;")
            with ctx.out.block(f"if (chunk_ < {c.chunks}u)") if c.chunks % (4 * wn) else nullcontext():
                _piece(ctx, c, "number_")


def _piece(ctx: Context, c: _Copy, number: str) -> None:
    """One piece of the row whose number is given; a row outside the tensor reads nothing."""
    ctx.out.line(f"const int at_row_ = first_row_ + {number}, at_col_ = first_col_ + {c.per} * (int)chunk_;")
    ctx.out.line(f"const u32 bytes_ = {c.bytes_([])};")
    source = f"bytes_ ? {c.source()} : {pointer(ctx, c.tensor)}"
    ctx.out.line(f"{ctx.use(tma.CP_ASYNC)}({chunk_address(c.rect, c.layout, 'row_', 'chunk_')}, {source}, bytes_);")


HANDLERS: dict[str, Callable[[Context, Op], None]] = {"cp_async": cp_async, "cp_async_rows": cp_async_rows}

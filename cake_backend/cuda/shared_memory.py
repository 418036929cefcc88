"""Fragments to and from shared memory: stmatrix and ldmatrix for 16-bit tiles, plain accesses for the other forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from cake_backend.cuda import mma_sync, vectors
from cake_backend.cuda.addresses import chunk_address, element_address, rect
from cake_backend.cuda.context import Context, Place, Rect
from cake_backend.cuda.elementwise import element, prepared, word
from cake_backend.cuda.fragments import (
    Index,
    Term,
    elements,
    loop,
    tile_blocks,
    tile_columns,
    warp_col,
    warp_row,
)  # fmt: skip
from cake_backend.cuda.positions import At
from cake_backend.cuda.preamble import Device
from cake_backend.cuda.scalars import scalar
from cake_backend.cuda.shared_elements import load_elements, read, store_elements
from cake_backend.cuda.shared_vectors import access, get_piece, in_pieces, put_piece, vec_pieces
from cake_ir.dtypes import DTYPES
from cake_ir.layout import ViewLayout
from cake_ir.program import Expr, Op
from cake_ir.types import FragT, ViewT

LOAD_F32X2 = Device(
    "load_shared_f32x2",
    """
DEVICE void load_shared_f32x2(float& x, float& y, u32 address) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(address) : "memory");
}""",
)
STORE_F32X2 = Device(
    "store_shared_f32x2",
    'DEVICE void store_shared_f32x2(u32 address, float x, float y) { asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(address), "f"(x), "f"(y) : "memory"); }',
)
STORE_16 = Device(
    "store_shared_16", 'DEVICE void store_shared_16(u32 address, u32 x) { asm volatile("st.shared.u16 [%0], %1;" :: "r"(address), "h"((u16)x) : "memory"); }'
)
LOAD_F32 = Device(
    "load_shared_f32",
    'DEVICE float load_shared_f32(u32 address) { float x; asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory"); return x; }',
)
LOAD_I32 = Device(
    "load_shared_i32",
    'DEVICE int load_shared_i32(u32 address) { int x; asm volatile("ld.shared.s32 %0, [%1];" : "=r"(x) : "r"(address) : "memory"); return x; }',
)


def _view(ctx: Context, op: Op) -> tuple[Rect, ViewLayout]:
    e = op.operands["view"]
    assert isinstance(e, Expr)
    r = rect(ctx, e)
    return r, ctx.layouts[r.view]


@contextmanager
def each_block(ctx: Context, t: FragT, per_block: int) -> Iterator[tuple[str, tuple[Term, ...]]]:
    """A loop over the 16-row blocks that this warp owns: C text (u32) of a block's first row, and its term in an element index.

    `per_block` is how far the index moves from block to block.
    """
    blocks = tile_blocks(t, ctx.role.warps)
    first = warp_row(ctx, t, "acc").replace("(int)", "").replace(" * warp", "u * warp").replace(" * (warp", "u * (warp")
    step = 16 if t.warps else 16 * ctx.role.warps
    if blocks == 1:
        yield first, ()
        return
    with ctx.out.unrolled("m_", blocks):
        yield _join(first, f"{step}u * m_"), (Term("m_", per_block, blocks),)


def _join(*terms: str) -> str:
    return " + ".join(t for t in terms if t)


def tile_chunk(t: FragT, per: int) -> str:
    """C text (u32) of the first 16-byte chunk that this warp owns; `per` elements a chunk."""
    if not warp_col(t):
        return ""
    wm, wn = t.warps or (1, 1)
    return f"{t.cols // wn // per}u * (warp / {wm}u)"


# ------------------------------------------------------------------ 16-bit tiles through matrix instructions


def matrix_addresses(r: Rect, first_row: str, column_chunk: str, *, wide: bool = True) -> str:
    """Declarations of the row and chunk that this lane addresses for one x4 (or x2) matrix instruction on a tile.

    The matrices are (upper rows, left), (lower, left), (upper, right), (lower, right); x2 has the first two only.
    """
    right, lower = "(lane >> 4)" if wide else "", "((lane >> 3) & 1u)"
    if not r.transposed:
        row, chunk = _join(first_row, "(lane & 15u)"), _join(column_chunk, right)
    else:  # the rectangle's columns run along the storage's rows
        row = _join(f"8u * ({column_chunk})" if column_chunk else "", "(lane & 7u)", f"8u * {right}" if right else "")
        chunk = _join(f"({first_row}) / 8u" if first_row else "", lower)
    return f"const u32 row_ = {row}, chunk_ = {chunk or '0u'};"


def _store_tile_16(ctx: Context, x: Expr, t: FragT, r: Rect, layout: ViewLayout) -> None:
    columns = tile_columns(t, ctx.role.warps)
    first = tile_chunk(t, 8)
    with each_block(ctx, t, 4 * columns) as (row, block):
        if not ctx.has("STMATRIX"):
            with ctx.out.unrolled("j_", columns):
                _store_words(ctx, x, t, r, layout, row, _join(first, "j_"), Index((*block, Term("j_", 4, columns))))
            return
        pairs, odd = divmod(columns, 2)
        if pairs:
            with ctx.out.unrolled("g_", pairs):
                _store_matrices(ctx, x, t, r, layout, row, _join(first, "2u * g_"), Index((*block, Term("g_", 8, pairs))), 4)
        if odd:
            with ctx.out.block(""):
                _store_matrices(ctx, x, t, r, layout, row, _join(first, f"{2 * pairs}u" if pairs else ""), Index(block, 8 * pairs), 2)


def _store_matrices(ctx: Context, x: Expr, t: FragT, r: Rect, layout: ViewLayout, row: str, chunk: str, at: Index, count: int) -> None:
    ctx.out.line(matrix_addresses(r, row, chunk, wide=count == 4))
    words = ", ".join(word(ctx, x, t, at.plus(2 * w)) for w in range(count))
    ctx.out.line(f"{ctx.use(mma_sync.stmatrix(count, trans=r.transposed))}({chunk_address(r, layout, 'row_', 'chunk_')}, {words});")


def _store_words(ctx: Context, x: Expr, t: FragT, r: Rect, layout: ViewLayout, row: str, chunk: str, at: Index) -> None:
    """One 4-byte store for each row half of a column block."""
    for half in (0, 1):
        ctx.out.line(f"const u32 row{half}_ = {_join(row, '8u' if half else '', '(lane >> 2)')};")
        address = chunk_address(r, layout, f"row{half}_", f"({chunk})" if " " in chunk else chunk)
        ctx.out.line(f"{ctx.use(access('store', 32))}({address} + 4u * (lane & 3u), {word(ctx, x, t, at.plus(2 * half))});")


def _store_tile_8(ctx: Context, x: Expr, t: FragT, r: Rect, layout: ViewLayout) -> None:
    """Two neighbouring bytes a row half and column block: no matrix instruction stores 8-bit accumulators on these targets."""
    columns = tile_columns(t, ctx.role.warps)
    first = tile_chunk(t, 16)
    store16 = ctx.use(STORE_16)
    with each_block(ctx, t, 4 * columns) as (row, block), ctx.out.unrolled("j_", columns):
        ctx.out.line(f"const u32 word_ = {word(ctx, x, t, Index((*block, Term('j_', 4, columns))))};")
        for half in (0, 1):
            ctx.out.line(f"const u32 row{half}_ = {_join(row, '8u' if half else '', '(lane >> 2)')};")
            address = chunk_address(r, layout, f"row{half}_", f"({_join(first, 'j_ / 2u')})")
            ctx.out.line(f"{store16}({address} + 8u * (j_ % 2u) + 2u * (lane & 3u), {'word_ >> 16' if half else 'word_'});")


def _register(place: Place) -> str:
    """The registers of a fragment as words; those of tf32 are floats."""
    return f"(u32&){place.name}" if place.type.dtype == "tf32" else place.name


def _load_tile(ctx: Context, place: Place, t: FragT, r: Rect, layout: ViewLayout) -> None:
    """16-bit `acc` and `a` tiles (and 8-bit `a`) by ldmatrix: four registers for 16 rows and two chunks."""
    bits = DTYPES[t.dtype].bits
    wn = t.warps[1] if t.warps and t.form == "acc" else 1
    chunks = t.cols // wn * bits // 128
    first = tile_chunk(t, 8) if t.form == "acc" else ""
    with each_block(ctx, t, 2 * chunks) as (row, block), ExitStack() as stack:
        looped = chunks > 2
        stack.enter_context(ctx.out.unrolled("g_", chunks // 2) if looped else ctx.out.block(""))
        ctx.out.line(matrix_addresses(r, row, _join(first, "2u * g_" if looped else "")))
        at = Index((*block, *((Term("g_", 4, chunks // 2),) if looped else ())))
        regs = ", ".join(f"{_register(place)}[{at.plus(w).text}]" for w in range(4))
        ctx.out.line(f"{ctx.use(mma_sync.ldmatrix(4, trans=r.transposed))}({regs}, {chunk_address(r, layout, 'row_', 'chunk_')});")


def _load_b(ctx: Context, place: Place, t: FragT, r: Rect, layout: ViewLayout) -> None:
    """`b` operands: two n8 tiles of one K tile an instruction."""
    bits = DTYPES[t.dtype].bits
    wm, wn = t.warps or (1, 1)
    rows = t.rows // wn
    tiles, deep = rows // 8, t.cols * bits // 256
    first_row = f"{rows}u * (warp / {wm}u)" if wn > 1 else ""
    pairs, odd = divmod(tiles, 2)
    for k in range(deep):
        for count, start in ((pairs, 0), (odd, 2 * pairs)):
            if not count:
                continue
            x4 = start == 0 and pairs > 0
            var = "g_" if x4 and pairs > 1 else ""
            with ctx.out.unrolled("g_", pairs) if var else ctx.out.block(""):
                n = " + ".join(y for y in (first_row, "16u * g_" if var else "", f"{8 * start}u" if start else "") if y)
                pair = "(lane >> 4)" if x4 else "0u"
                k_half = "((lane >> 3) & 1u)"
                if not r.transposed:
                    row = " + ".join(y for y in (n, "(lane & 7u)", f"8u * {pair}" if x4 else "") if y)
                    chunk = " + ".join(y for y in (f"{2 * k}u" if k else "", k_half) if y)
                else:
                    row = " + ".join(y for y in (f"{16 * k}u" if k else "", "(lane & 7u)", f"8u * {k_half}") if y)
                    chunk = " + ".join(y for y in (f"({n}) / 8u" if n else "", pair if x4 else "") if y) or "0u"
                ctx.out.line(f"const u32 row_ = {row}, chunk_ = {chunk};")
                where = [loop(var, 4 * deep, 2 * deep * (start + i) + 2 * k + q) for i in range(2 if x4 else 1) for q in range(2)]
                regs = ", ".join(f"{_register(place)}[{i.text}]" for i in where)
                device = mma_sync.ldmatrix(4 if x4 else 2, trans=r.transposed)
                ctx.out.line(f"{ctx.use(device)}({regs}, {chunk_address(r, layout, 'row_', 'chunk_')});")


# ------------------------------------------------------------------ 32-bit tiles, vectors, scalars


def tile_pieces(ctx: Context, t: FragT, r: Rect, layout: ViewLayout, body: Callable[[str, Index], None]) -> None:
    """Visit the 8-byte pieces of an f32 `acc` tile: address and index of the first of the two elements."""
    columns = tile_columns(t, ctx.role.warps)
    first = tile_chunk(t, 4)
    with each_block(ctx, t, 4 * columns) as (row, block), ctx.out.unrolled("j_", columns):
        for half in (0, 1):
            ctx.out.line(f"const u32 row{half}_ = {_join(row, '8u' if half else '', '(lane >> 2)')};")
            chunk = _join(first, "2u * j_", "((lane >> 1) & 1u)")
            address = chunk_address(r, layout, f"row{half}_", f"({chunk})")
            body(f"{address} + 8u * (lane & 1u)", Index((*block, Term("j_", 4, columns)), 2 * half))


def store(ctx: Context, op: Op) -> None:
    """`view.store(x)`."""
    r, layout = _view(ctx, op)
    x = op.operands["x"]
    assert isinstance(x, Expr)
    x = prepared(ctx, x)
    t = x.type
    assert isinstance(t, FragT)
    bits = DTYPES[t.dtype].bits
    if t.form in ("acc", "a") and bits == 16 and (ctx.has("STMATRIX") or not r.transposed):
        _store_tile_16(ctx, x, t, r, layout)
    elif t.form == "acc" and bits == 8 and t.dtype != "bool" and not r.transposed:
        _store_tile_8(ctx, x, t, r, layout)
    elif t.form == "acc" and t.dtype in ("f32", "tf32") and not r.transposed:

        def put(address: str, at: Index) -> None:
            pair = [element(ctx, x, At(t, at.plus(p))) for p in (0, 1)]
            ctx.out.line(f"{ctx.use(STORE_F32X2)}({address}, {pair[0]}, {pair[1]});")

        tile_pieces(ctx, t, r, layout, put)
    elif t.form == "vec" and in_pieces(t, r):
        vec_pieces(ctx, t, r, layout, lambda at, address: put_piece(ctx, x, t, at, address))
    elif t.form in ("rowvec", "colvec", "scalar") and bits <= 32 and not r.transposed:
        vectors.store_shared(ctx, x, t, r, layout)
    else:
        store_elements(ctx, x, t, r, layout)


def by_matrix(ctx: Context, t: FragT, r: Rect, asked: bool = False) -> bool:
    """Whether ldmatrix fills a fragment: 16-bit tiles and operands, and 8-bit operands that are read as they are stored. Operands of tf32, one of which lies
    where two 16-bit elements do, where the text asks for it: an ordinary load of them may start inside 16 bytes."""
    bits = DTYPES[t.dtype].bits
    if asked and t.dtype == "tf32" and t.form in ("a", "b") and not r.transposed:
        return True
    if t.form not in ("acc", "a", "b") or bits not in (8, 16) or t.dtype == "bool" or (bits == 8 and (r.transposed or t.form == "acc")):
        return False
    wn = t.warps[1] if t.warps and t.form == "acc" else 1
    return t.form == "b" or t.cols // wn * bits // 128 % 2 == 0  # two 16-byte columns at a time


def load(ctx: Context, op: Op, place: Place | None) -> str:
    """`view.load(form=..)` and `view.ldmatrix(form=..)`."""
    assert place is not None
    r, layout = _view(ctx, op)
    t = place.type
    bits = DTYPES[t.dtype].bits
    if by_matrix(ctx, t, r, asked=op.name == "ldmatrix"):
        (_load_b if t.form == "b" else _load_tile)(ctx, place, t, r, layout)
    elif t.form == "acc" and t.dtype in ("f32", "tf32") and not r.transposed:

        def get(address: str, at: Index) -> None:
            pair = [f"{place.name}[{at.plus(p).text}]" for p in (0, 1)]
            ctx.out.line(f"{ctx.use(LOAD_F32X2)}({pair[0]}, {pair[1]}, {address});")

        tile_pieces(ctx, t, r, layout, get)
    elif t.form == "vec" and in_pieces(t, r):
        vec_pieces(ctx, t, r, layout, lambda at, address: get_piece(ctx, place, at, address))
    elif t.form == "colvec" and bits <= 32 and not r.transposed:
        _load_colvec(ctx, op, place, t, r, layout)
    elif t.form == "rowvec" and bits <= 32 and not r.transposed:
        vectors.load_shared(ctx, place, r, layout, op.span)
    else:
        load_elements(ctx, place, r, layout, op.span)
    return ""


def _load_colvec(ctx: Context, op: Op, place: Place, t: FragT, r: Rect, layout: ViewLayout) -> None:
    """Two neighbouring columns an 8-column block: one 8-byte access (4 bytes for 16-bit elements)."""
    bits = DTYPES[t.dtype].bits
    if layout.swizzle or r.transposed or bits not in (16, 32) or (layout.rows > 1 and r.cols == 1):
        vectors.load_shared(ctx, place, r, layout, op.span)
        return
    count = elements(t, ctx.role.warps) // 2
    with ctx.out.unrolled("i_", count):
        at = element_address(r, layout, "0u", "8u * i_ + 2u * (lane & 3u)" + (f" + (u32)({warp_col(t)})" if warp_col(t) else ""))
        if bits == 16:
            ctx.out.line(f"{ctx.use(access('load', 32))}({place.name}[i_], {at});")
        elif t.dtype == "f32":
            ctx.out.line(f"{ctx.use(LOAD_F32X2)}({place.name}[2 * i_], {place.name}[2 * i_ + 1], {at});")
        else:
            ctx.out.line(f"{ctx.use(access('load', 64))}((u32&){place.name}[2 * i_], (u32&){place.name}[2 * i_ + 1], {at});")


def ld(ctx: Context, op: Op, place: Place | None) -> str:
    """`view.ld(i)`: one uniform scalar, counted along the rows."""
    r, layout = _view(ctx, op)
    i, view = op.operands["i"], op.operands["view"]
    assert isinstance(i, Expr) and isinstance(view, Expr) and isinstance(view.type, ViewT)
    dtype = ctx.program.views[r.view].dtype
    number = f"(u32)({scalar(ctx, i)})"
    width = view.type.shape[-1]
    row, column = ("0u", number) if view.type.rank == 1 else (f"({number} / {width}u)", f"({number} % {width}u)")
    if view.type.transposed:
        row, column = column, row
    address = element_address(r, layout, row, column)
    if dtype in ("f32", "i32"):
        return f"{ctx.use(LOAD_F32 if dtype == 'f32' else LOAD_I32)}({address})"
    return read(ctx, dtype, address, op.span)


EFFECTS: dict[str, Callable[[Context, Op], None]] = {"view.store": store}
RESULTS: dict[str, Callable[[Context, Op, Place | None], str]] = {"view.load": load, "view.ldmatrix": load, "view.ld": ld}

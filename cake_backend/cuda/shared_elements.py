"""Fragments to and from shared memory element by element: every form, width and transposition that no vector or matrix access serves."""

from __future__ import annotations

from cake_backend.cuda.addresses import element_address
from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.context import Context, Place, Rect
from cake_backend.cuda.elementwise import element
from cake_backend.cuda.fragments import Index, elements, loop, packing
from cake_backend.cuda.per_element import exists, once
from cake_backend.cuda.positions import At
from cake_backend.cuda.preamble import Device
from cake_backend.cuda.scalars import CTYPE
from cake_backend.cuda.vectors import computed, memory_value, shared_element
from cake_ir.dtypes import DTYPES
from cake_ir.layout import ViewLayout
from cake_ir.program import Expr
from cake_ir.span import Span
from cake_ir.types import FragT

LOAD_64 = Device(
    "load_shared_element_64",
    'DEVICE u64 load_shared_element_64(u32 address) { u64 x; asm volatile("ld.shared.u64 %0, [%1];" : "=l"(x) : "r"(address) : "memory"); return x; }',
)
STORE_64 = Device(
    "store_shared_element_64",
    'DEVICE void store_shared_element_64(u32 address, u64 x) { asm volatile("st.shared.u64 [%0], %1;" :: "r"(address), "l"(x) : "memory"); }',
)


def read(ctx: Context, dtype: str, address: str, span: Span) -> str:
    """C text of an element in shared memory, as a value to compute with."""
    bits = 8 if dtype == "bool" else DTYPES[dtype].bits
    if bits == 64:
        return f"({CTYPE[dtype]}){ctx.use(LOAD_64)}({address})"
    raw = f"{ctx.use(shared_element('load', bits))}({address})"
    if bits == 32:
        return {"float": f"__uint_as_float({raw})", "int": f"(int){raw}"}.get(CTYPE[dtype], raw)
    return f"({raw} != 0)" if dtype == "bool" else computed(ctx, dtype, f"({dtype}){raw}" if dtype in ("i8", "u8") else raw, span)


def write(ctx: Context, dtype: str, address: str, value: str, span: Span) -> str:
    """A statement that stores a computed value in shared memory."""
    bits = 8 if dtype == "bool" else DTYPES[dtype].bits
    if bits == 64:
        return f"{ctx.use(STORE_64)}({address}, (u64)({value}));"
    put = ctx.use(shared_element("store", bits))
    if bits == 32:
        raw = {"float": f"__float_as_uint({value})", "int": f"(u32)({value})"}.get(CTYPE[dtype], value)
        return f"{put}({address}, {raw});"
    return f"{put}({address}, {memory_value(ctx, dtype, value, span)});"


def position_address(ctx: Context, t: FragT, at: At, r: Rect, layout: ViewLayout) -> str:
    """C text of the address of an element; a fragment of another shape than the view (a `vec`) counts through the view's rows."""
    if t.form in ("rowvec", "colvec", "scalar"):
        where = "0" if t.form == "scalar" else at.row(ctx) if t.form == "rowvec" else at.col(ctx)
        row, col = (where, "0") if layout.rows > 1 and r.cols == 1 else ("0", where)
    elif t.form == "vec":
        flat = operand(at.flat_position(ctx))
        row, col = (f"{flat} / {r.cols}", f"{flat} % {r.cols}") if r.rows > 1 else ("0", flat)
    else:
        row, col = at.row(ctx), at.col(ctx)
    if r.transposed:
        row, col = col, row
    return element_address(r, layout, f"(u32)({row})" if row != "0" else "0u", f"(u32)({col})")


def _visit(t: FragT, count: int) -> At:
    return At(t, loop("i_", 1, 0, count) if count > 1 else Index())


def load_elements(ctx: Context, place: Place, r: Rect, layout: ViewLayout, span: Span) -> None:
    """Fill a place from a rectangle."""
    t, per = place.type, packing(place.type)
    count = elements(t, ctx.role.warps)
    if per > 1:
        with ctx.out.unrolled("i_", place.count):
            ctx.out.line(f"{place.name}[i_] = 0u;")
    with ctx.out.unrolled("i_", count) if count > 1 else ctx.out.block(""):
        at = _visit(t, count)
        address, tests = position_address(ctx, t, at, r, layout), exists(ctx, t, at)
        if per > 1:
            bits = DTYPES[t.dtype].bits
            text = f"{place.name}[{at.index.divided(per)}] |= {ctx.use(shared_element('load', bits))}({address}) << ({bits} * ({at.index.modulo(per)}));"
        else:
            text = f"{place.name}[{at.flat}] = {read(ctx, t.dtype, address, span)};"
        ctx.out.line(f"if ({' && '.join(tests)}) {text}" if tests else text)


def store_elements(ctx: Context, x: Expr, t: FragT, r: Rect, layout: ViewLayout) -> None:
    """Write a fragment to a rectangle, each element by one of the threads that hold it."""
    count = elements(t, ctx.role.warps)
    with ctx.out.unrolled("i_", count) if count > 1 else ctx.out.block(""):
        at = _visit(t, count)
        tests = once(ctx, t, at)
        text = write(ctx, t.dtype, position_address(ctx, t, at, r, layout), element(ctx, x, at), x.span)
        ctx.out.line(f"if ({' && '.join(tests)}) {text}" if tests else text)



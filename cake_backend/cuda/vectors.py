"""Row vectors, column vectors and scalars to and from memory, element by element in whatever type memory holds."""

from __future__ import annotations

from cake_backend.cuda import conversions
from cake_backend.cuda.addresses import element_address
from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.context import Context, Place, Rect
from cake_backend.cuda.elementwise import element
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, colvec_col, ctype, elements, loop, packing, rowvec_row, run_exists
from cake_backend.cuda.per_element import once
from cake_backend.cuda.positions import At
from cake_backend.cuda.preamble import Device
from cake_backend.cuda.scalars import CTYPE, number
from cake_ir.dtypes import DTYPES
from cake_ir.layout import ViewLayout
from cake_ir.program import Expr
from cake_ir.span import Span
from cake_ir.types import FragT

_NARROW_FLOATS = ("bf16", "f16", "e4m3", "e5m2", "ue8m0")


def shared_element(kind: str, bits: int) -> Device:
    """A load or store of one element of shared memory as u32."""
    suffix = {8: "u8", 16: "u16", 32: "u32"}[bits]
    name = f"{kind}_shared_element_{bits}"
    if kind == "load":
        return Device(name, f'DEVICE u32 {name}(u32 address) {{ u32 x; asm volatile("ld.shared.{suffix} %0, [%1];" : "=r"(x) : "r"(address) : "memory"); return x; }}')
    return Device(name, f'DEVICE void {name}(u32 address, u32 x) {{ asm volatile("st.shared.{suffix} [%0], %1;" :: "r"(address), "r"(x) : "memory"); }}')


def memory_value(ctx: Context, dtype: str, value: str, span: Span) -> str:
    """A computed value as its type in memory."""
    if dtype in ("f32", "tf32", "i32", "u32", "i64", "u64"):
        return value
    if dtype == "ue8m0":
        return f"(u8)(__float_as_uint({value}) >> 23)"
    if dtype in _NARROW_FLOATS:
        bits = DTYPES[dtype].bits
        rest = ["0.0f"] * (32 // bits - 1)
        return f"(u{bits}){conversions.pack(ctx, dtype, [value, *rest], span)}"
    if dtype in ("i8", "u8", "bool"):
        return f"({'u8' if dtype == 'bool' else dtype})({value})"
    return not_lowered(f"an element-wise store of {dtype}", span)


def computed(ctx: Context, dtype: str, raw: str, span: Span) -> str:
    """What memory holds as a value to compute with; `raw` has the memory's type."""
    if dtype in _NARROW_FLOATS:
        return conversions.unpack(ctx, dtype, f"(u32){raw}", "0", span)
    return f"(int){raw}" if dtype in ("i8", "u8") else raw


def _position(ctx: Context, t: FragT, i: Index) -> str:
    return rowvec_row(ctx, t, i) if t.form == "rowvec" else colvec_col(t, i)


def register_value(ctx: Context, t: FragT, raws: list[str], guards: list[str], fill: object, span: Span) -> str:
    """One register of a vector from the raw elements that it packs, each under its guard."""
    p, bits = packing(t), DTYPES[t.dtype].bits
    if p == 1:
        value = computed(ctx, t.dtype, raws[0], span)
        return f"{guards[0]} ? {value} : {number(fill, ctype(t))}" if guards[0] else value
    parts = []
    for k, (raw, guard) in enumerate(zip(raws, guards, strict=True)):
        other = "0u" if fill == 0 else f"(u32){memory_value(ctx, t.dtype, number(fill, 'float'), span)}"
        value = f"({guard} ? (u32){raw} : {other})" if guard else f"(u32){raw}"
        parts.append(value + (f" << {k * bits}" if k else ""))
    return " | ".join(parts)


def load_shared(ctx: Context, place: Place, r: Rect, layout: ViewLayout, span: Span) -> None:
    """`view.load` of a row or column vector."""
    t, p, bits = place.type, packing(place.type), DTYPES[place.type.dtype].bits
    device = ctx.use(shared_element("load", bits))
    count = elements(t, ctx.role.warps) // p
    with ctx.out.unrolled("i_", count):
        raws, guards = [], []
        for k in range(p):
            at = loop("i_", p, k)
            call = f"{device}({vector_address(r, layout, _position(ctx, t, at))})"
            raws.append(call if p > 1 or bits < 32 else {"float": f"__uint_as_float({call})", "int": f"(int){call}"}.get(ctype(t), call))
            guards.append(run_exists(ctx, t, at))
        if any(guards):
            ctx.out.line(f"if ({' && '.join(g for g in guards if g)}) {place.name}[i_] = {register_value(ctx, t, raws, [''] * p, 0, span)};")
        else:
            ctx.out.line(f"{place.name}[i_] = {register_value(ctx, t, raws, guards, 0, span)};")


def store_shared(ctx: Context, x: Expr, t: FragT, r: Rect, layout: ViewLayout) -> None:
    """`view.store` of a row vector, column vector or scalar: one lane an element."""
    bits = DTYPES[t.dtype].bits
    device = ctx.use(shared_element("store", bits))
    count = elements(t, ctx.role.warps)
    with ctx.out.unrolled("i_", count) if count > 1 else ctx.out.block(""):
        at = At(t, loop("i_") if count > 1 else Index())
        where = _position(ctx, t, at.index) if t.form != "scalar" else "0"
        value = element(ctx, x, at)
        raw = {"float": f"__float_as_uint({value})", "int": f"(u32)({value})"}.get(CTYPE[t.dtype], value) if bits == 32 else memory_value(ctx, t.dtype, value, x.span)
        put = f"{device}({vector_address(r, layout, where)}, {raw});"
        ctx.out.line(f"if ({' && '.join(tests)}) {put}" if (tests := once(ctx, t, at)) else put)


def vector_address(r: Rect, layout: ViewLayout, position: str) -> str:
    """Address of an element of a 1-D (or one-column) view."""
    if layout.rows > 1 and r.cols == 1:
        return element_address(r, layout, f"(u32)({position})", "0")
    return element_address(r, layout, "0u", f"(u32)({position})")


def load_global(ctx: Context, place: Place, base: str, clip: list[str], mask: Expr | None, fill: object, span: Span) -> None:
    """`lm.load` of a row or column vector from `base`; `clip` holds `position < extent` texts with `where_` for the position."""
    t, p = place.type, packing(place.type)
    count = elements(t, ctx.role.warps) // p
    with ctx.out.unrolled("i_", count):
        raws, guards = [], []
        for k in range(p):
            at = At(t, loop("i_", p, k))
            where = at.row(ctx) if t.form == "rowvec" else at.col(ctx)
            tests = [x for x in (run_exists(ctx, t, at.index),) if x]
            tests += [element(ctx, mask, at)] if mask is not None else []
            tests += [c.replace("where_", where) for c in clip]
            raws.append(f"({base})[{where}]")
            guards.append(" && ".join(tests))
        ctx.out.line(f"{place.name}[i_] = {register_value(ctx, t, raws, guards, fill, span)};")


def store_global(ctx: Context, x: Expr, t: FragT, base: str, clip: list[str], mask: Expr | None) -> None:
    """`lm.store` of a row or column vector to `base`: one lane an element."""
    with ctx.out.unrolled("i_", elements(t, ctx.role.warps)):
        at = At(t, loop("i_"))
        where = at.row(ctx) if t.form == "rowvec" else at.col(ctx)
        guards = once(ctx, t, at) + ([element(ctx, mask, at)] if mask is not None else [])
        guards += [c.replace("where_", operand(where)) for c in clip]
        text = f"({base})[{where}] = {memory_value(ctx, t.dtype, element(ctx, x, at), x.span)};"
        ctx.out.line(f"if ({' && '.join(guards)}) {text}" if guards else text)

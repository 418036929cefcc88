"""`lm.reduce(across=)`: each warp's value through scratch in shared memory, a meeting, and the warps' values again."""

from __future__ import annotations

from cake_backend.cuda.addresses import element_address, rect
from cake_backend.cuda.context import Context, Place
from cake_backend.cuda.elementwise import assign_elements, prepared
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import loop, rowvec_row
from cake_backend.cuda.positions import TILES
from cake_backend.cuda.preamble import Device
from cake_backend.cuda.reduce import combine, in_thread, over_lanes, tile_rows
from cake_ir.program import Expr, Op
from cake_ir.types import FragT

_NAMES = {"f32": ("f32", "float", "f"), "i32": ("i32", "int", "r")}


def _store(dtype: str) -> Device:
    name, ctype, constraint = _NAMES[dtype]
    ptx = "st.shared.f32" if dtype == "f32" else "st.shared.s32"
    return Device(
        f"store_shared_{name}",
        f'DEVICE void store_shared_{name}(u32 address, {ctype} x) {{ asm volatile("{ptx} [%0], %1;" :: "r"(address), "{constraint}"(x) : "memory"); }}',
    )


def _load(dtype: str) -> Device:
    name, ctype, constraint = _NAMES[dtype]
    ptx = "ld.shared.f32" if dtype == "f32" else "ld.shared.s32"
    return Device(
        f"load_shared_{name}",
        f'DEVICE {ctype} load_shared_{name}(u32 address) {{ {ctype} x; asm volatile("{ptx} %0, [%1];" : "={constraint}"(x) : "r"(address) : "memory"); return x; }}',
    )


def reduce_across(ctx: Context, op: Op, target: Place) -> None:
    """`reduce(across=role, ..)`: thread, warp, scratch, barrier, and the warps' values again."""
    x, scratch = op.operands["x"], op.operands["scratch"]
    assert isinstance(x, Expr) and isinstance(scratch, Expr)
    x = prepared(ctx, x)
    t, kind = x.type, str(op.attrs["op"])
    assert isinstance(t, FragT)
    if t.dtype not in _NAMES:
        not_lowered(f"a reduction of {t} across warps", op.span)
    if target.type.form == "rowvec":
        _rows_across(ctx, op, target, x, t, scratch)
        return
    number = "float" if t.dtype == "f32" else "int"
    place = rect(ctx, scratch)
    warps = ctx.role.role.warps
    if t.form in ("vec", *TILES):
        in_thread(ctx, target, x, t, kind, number)
    else:
        assign_elements(ctx, target, x)
    if t.form in ("vec", *TILES) or t.partial:  # a finished scalar is one value, equal on all lanes
        over_lanes(ctx, target, kind, number, (16, 8, 4, 2, 1))
    where = "warp" if ctx.role.role.members == 1 else f"({ctx.role.index} * {ctx.role.warps}u + warp)"
    store, load = ctx.use(_store(t.dtype)), ctx.use(_load(t.dtype))
    ctx.out.line(f"if (lane == 0) {store}({place.base} + 4u * {where}, {target.name}[0]);")
    _meet(ctx, op)
    ctx.out.line(f"{target.name}[0] = {load}({place.base});")
    with ctx.out.unrolled("i_", warps, 1):
        ctx.out.line(f"{target.name}[0] = {combine(kind, number, f'{target.name}[0]', f'{load}({place.base} + 4u * i_)')};")


def _meet(ctx: Context, op: Op) -> None:
    from cake_backend.cuda.sync import named_sync

    named_sync(ctx, str(op.attrs["sync"]), op.span)


def _rows_across(ctx: Context, op: Op, target: Place, x: Expr, t: FragT, scratch: Expr) -> None:
    """Rows of a tile that several warps share along its columns: each warp's value of a row through scratch (warps, rows)."""
    kind = str(op.attrs["op"])
    place = rect(ctx, scratch)
    layout = ctx.layouts[place.view]
    wm, wn = t.warps or (ctx.role.warps, 1)
    number = "float" if t.dtype == "f32" else "int"
    if t.form == "rowvec":
        assign_elements(ctx, target, x)
    else:
        tile_rows(ctx, target, x, t, kind, number)
    if t.form != "rowvec" or t.partial:
        over_lanes(ctx, target, kind, number, (1, 2))
    if layout.rows < wn or layout.cols < t.rows:
        not_lowered(f"scratch of {layout.rows} x {layout.cols} for {wn} values of {t.rows} rows", op.span, f"declare it as ({ctx.role.warps}, {t.rows}) {t.dtype}")
    store, load = ctx.use(_store(t.dtype)), ctx.use(_load(t.dtype))
    row = f"(u32)({rowvec_row(ctx, target.type, loop('i_'))})"
    with ctx.out.block("if ((lane & 3u) == 0)"), ctx.out.unrolled("i_", target.count):
        address = element_address(place, layout, f"(warp / {wm}u)" if wn > 1 else "0u", row)
        ctx.out.line(f"{store}({address}, {target.name}[i_]);")
    _meet(ctx, op)
    with ctx.out.unrolled("i_", target.count):
        ctx.out.line(f"{target.name}[i_] = {load}({element_address(place, layout, '0u', row)});")
        for w in range(1, wn):
            other = element_address(place, layout, f"{w}u", row)
            ctx.out.line(f"{target.name}[i_] = {combine(kind, number, f'{target.name}[i_]', f'{load}({other})')};")

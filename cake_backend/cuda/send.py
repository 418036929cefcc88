"""`view.send`: fragments into a peer CTA's shared memory, each thread its own elements, counted in bytes on the peer's barrier."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from cake_backend.cuda.addresses import at_stage, chunk_address
from cake_backend.cuda.context import Context, Rect
from cake_backend.cuda.elementwise import element, prepared, word
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import Index, Term, ctype, elements, first_of_row, loop, packing, rowvec_row, tile_columns
from cake_backend.cuda.per_element import once
from cake_backend.cuda.positions import At
from cake_backend.cuda.preamble import Device, asm_call
from cake_backend.cuda.rings import barrier_address
from cake_backend.cuda.scalars import scalar
from cake_backend.cuda.shared_elements import position_address
from cake_backend.cuda.shared_memory import each_block, tile_chunk, tile_pieces
from cake_backend.cuda.shared_vectors import in_pieces, piece_bits, vec_pieces
from cake_backend.cuda.vectors import vector_address
from cake_ir.dtypes import DTYPES
from cake_ir.layout import ViewLayout
from cake_ir.program import Expr, Op
from cake_ir.types import FragT

MAP_SHARED = Device(
    "map_shared",
    """
DEVICE u32 map_shared(u32 address, u32 cta) {  // the same place in a CTA of the cluster
  u32 r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(cta));
  return r;
}""",
)


def _send(bits: int) -> Device:
    n = bits // 32
    regs = ", ".join(f"%{i + 2}" for i in range(n))
    vector, listed = (f".v{n}", f"{{{regs}}}") if n > 1 else ("", regs)
    return asm_call(
        f"send_{bits}", f"u32 address, u32 bar, {', '.join(f'u32 r{i}' for i in range(n))}",
        f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{vector}.b32 [%0], {listed}, [%1];",
        f'"r"(address), "r"(bar), {", ".join(f"{chr(34)}r{chr(34)}(r{i})" for i in range(n))}',
    )  # fmt: skip


def send(ctx: Context, op: Op) -> None:
    """The pieces that a store to the own view would have, at the peer's addresses."""
    view, stage, cta, x = (op.operands.get(n) for n in ("view", "stage", "cta", "x"))
    assert isinstance(view, Expr) and isinstance(cta, Expr) and isinstance(x, Expr) and (stage is None or isinstance(stage, Expr))
    here = at_stage(ctx, view, stage)
    layout = ctx.layouts[here.view]
    x = prepared(ctx, x)
    t = x.type
    assert isinstance(t, FragT)
    with ctx.out.block(""):
        ctx.out.line(f"const u32 cta_ = (u32)({scalar(ctx, cta)});")
        ctx.out.line(f"const u32 peer_ = {ctx.use(MAP_SHARED)}({here.base}, cta_);")
        ctx.out.line(f"const u32 landed_ = {ctx.use(MAP_SHARED)}({barrier_address(ctx, str(op.attrs['barrier']), stage)}, cta_);")
        _pieces(ctx, op, x, t, replace(here, base="peer_"), layout)


def _pieces(ctx: Context, op: Op, x: Expr, t: FragT, r: Rect, layout: ViewLayout) -> None:
    bits = DTYPES[t.dtype].bits

    def put(address: str, words: list[str]) -> None:
        ctx.out.line(f"{ctx.use(_send(32 * len(words)))}({address}, landed_, {', '.join(words)});")

    if t.form == "acc" and bits == 32 and not r.transposed:
        tile_pieces(ctx, t, r, layout, lambda address, at: put(address, [_word(ctx, x, t, at), _word(ctx, x, t, at.plus(1))]))
    elif t.form == "acc" and bits == 16:
        _halves(ctx, x, t, r, layout, put)
    elif t.form == "vec" and in_pieces(t, r):
        per = packing(t)
        vec_pieces(ctx, t, r, layout, lambda at, address: put(address, [_word(ctx, x, t, at.plus(per * w)) for w in range(piece_bits(t) // 32)]))
    elif t.form == "rowvec" and bits == 32 and not t.warps:
        with ctx.out.unrolled("i_", elements(t, ctx.role.warps)):
            who, address = first_of_row(ctx, t, "i_"), vector_address(r, layout, rowvec_row(ctx, t, loop("i_")))
            call = f"{ctx.use(_send(32))}({address}, landed_, {_word(ctx, x, t, loop('i_'))});"
            ctx.out.line(f"if ({who}) {call}" if who else call)
    elif (packing(t) * bits == 32 and t.form in ("a", "b")) or bits >= 32:
        _elements(ctx, x, t, r, layout, put)
    else:
        not_lowered(f"a send of {t}", op.span)


def _elements(ctx: Context, x: Expr, t: FragT, r: Rect, layout: ViewLayout, put: Callable[[str, list[str]], None]) -> None:
    """A word (or a 64-bit element) at a time, by one of the threads that hold it."""
    per = packing(t)
    count = elements(t, ctx.role.warps) // per
    with ctx.out.unrolled("i_", count) if count > 1 else ctx.out.block(""):
        at = At(t, loop("i_", per, 0, count) if count > 1 else Index())
        tests = once(ctx, t, at)
        with ctx.out.block(f"if ({' && '.join(tests)})") if tests else nullcontext():
            if DTYPES[t.dtype].bits == 64:
                ctx.out.line(f"const u64 x_ = (u64)({element(ctx, x, at)});")
                words = ["(u32)x_", "(u32)(x_ >> 32)"]
            else:
                words = [_word(ctx, x, t, at.index)]
            put(position_address(ctx, t, at, r, layout), words)


def _word(ctx: Context, x: Expr, t: FragT, at: Index) -> str:
    """One 32-bit register of a fragment as u32."""
    if ctype(t) == "u32":
        return word(ctx, x, t, at)
    text = element(ctx, x, At(t, at))
    return f"__float_as_uint({text})" if ctype(t) == "float" else f"(u32)({text})"


def _halves(ctx: Context, x: Expr, t: FragT, r: Rect, layout: ViewLayout, put: Callable[[str, list[str]], None]) -> None:
    """Two neighbouring 16-bit columns a row half and column block."""
    columns, first = tile_columns(t, ctx.role.warps), tile_chunk(t, 8)
    with each_block(ctx, t, 4 * columns) as (row, block), ctx.out.unrolled("j_", columns):
        at = Index((*block, Term("j_", 4, columns)))
        for half in (0, 1):
            ctx.out.line(f"const u32 row{half}_ = {' + '.join(y for y in (row, '8u' if half else '', '(lane >> 2)') if y)};")
            chunk = f"({first} + j_)" if first else "j_"
            put(f"{chunk_address(r, layout, f'row{half}_', chunk)} + 4u * (lane & 3u)", [word(ctx, x, t, at.plus(2 * half))])


EFFECTS: dict[str, Callable[[Context, Op], None]] = {"view.send": send}

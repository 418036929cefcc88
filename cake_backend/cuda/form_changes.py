"""Changes of a fragment's form in registers: accumulators to operands, transposition by movmatrix."""

from __future__ import annotations

from cake_backend.cuda import mma_sync
from cake_backend.cuda.context import Context, Place
from cake_backend.cuda.elementwise import assign_elements, prepared
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.fragments import declare, packing
from cake_backend.cuda.preamble import Device
from cake_ir.program import Expr
from cake_ir.types import FragT

GATHER_8 = Device(
    "gather_8bit",
    """
DEVICE u32 gather_8bit(u32 pair, u32 lane) {  // two neighbouring columns of two 8-column blocks -> four neighbouring columns
  const int from = (int)((lane & ~3u) + 2u * (lane & 1u));
  const u32 x = __shfl_sync(0xffffffffu, pair, from), y = __shfl_sync(0xffffffffu, pair, from + 1);
  return __byte_perm(x, y, lane & 2u ? 0x7632 : 0x5410);
}""",
)


def is_form_change(e: Expr) -> bool:
    """Whether an expression moves elements between registers or lanes, so that it is not evaluated element by element."""
    if e.op == "transpose":
        return True
    x = e.args[0].type if e.args else None
    t = e.type
    if e.op != "cast" or not isinstance(x, FragT) or not isinstance(t, FragT) or x.form == t.form:
        return False
    return not (x.form == "acc" and t.form == "a" and packing(t) <= 2)


def change_into(ctx: Context, target: Place, e: Expr) -> None:
    """Write the changed fragment to a place."""
    if e.op == "transpose":
        _transpose(ctx, target, e)
    elif e.type.form == "b" and packing(target.type) == 2:  # type: ignore[union-attr]  # a cast of a fragment is one
        _to_b(ctx, target, e)
    elif e.type.form == "a" and packing(target.type) == 4:  # type: ignore[union-attr]  # a cast of a fragment is one
        _to_a_8(ctx, target, e)
    elif e.type.form == "acc" and packing(target.type) == 2:  # type: ignore[union-attr]  # a cast of a fragment is one
        _to_acc(ctx, target, e)
    else:
        not_lowered(f"a cast to {e.type}", e.span)


def _narrow(ctx: Context, e: Expr, t: FragT) -> Place:
    """The operand converted to the dtype of `t`, in its own form."""
    x = e.args[0]
    assert isinstance(x.type, FragT)
    place = declare(ctx, "narrow", x.type.with_(dtype=t.dtype, stages=1, partial=None))
    cast = x if x.type.dtype == t.dtype else Expr("cast", (x,), {**e.attrs, "dtype": t.dtype, "form": None}, place.type, e.span)
    assign_elements(ctx, place, prepared(ctx, cast))
    return place


def _alone_along_rows(ctx: Context, t: FragT) -> bool:
    return (t.warps[0] if t.warps else ctx.role.warps) == 1


def _transpose(ctx: Context, target: Place, e: Expr) -> None:
    """One movmatrix an 8x8 tile. Registers of an `acc`: (16-row block, 8-column block, half); of a `b`: (8-row tile, 16-column tile, half)."""
    t = e.type
    assert isinstance(t, FragT)
    source = _narrow(ctx, e, t)
    x = source.type
    if packing(t) != 2 or not _alone_along_rows(ctx, x):
        not_lowered("a transposition of anything but a 16-bit fragment whose rows one warp holds", e.span)
    move = ctx.use(mma_sync.MOVMATRIX)
    deep = t.cols // 16
    if x.form == "acc":
        blocks, columns = x.rows // 16, x.cols // 8
        with ctx.out.unrolled("n_", columns), ctx.out.unrolled("k_", blocks), ctx.out.unrolled("h_", 2):
            ctx.out.line(f"{target.name}[({deep} * n_ + k_) * 2 + h_] = {move}({source.name}[({columns} * k_ + n_) * 2 + h_]);")
        return
    tiles = x.cols // 16
    with ctx.out.unrolled("n_", x.rows // 8), ctx.out.unrolled("k_", 2 * tiles):
        ctx.out.line(f"{target.name}[({deep} * k_ + n_ / 2) * 2 + n_ % 2] = {move}({source.name}[{2 * tiles} * n_ + k_]);")


def _to_b(ctx: Context, target: Place, e: Expr) -> None:
    """Rows become N, columns K: every thread has the elements already, in another order."""
    t = e.type
    assert isinstance(t, FragT)
    source = _narrow(ctx, e, t)
    if source.type.form != "acc" or not _alone_along_rows(ctx, source.type):
        not_lowered("a cast to form `b` of a tile whose rows several warps share", e.span)
    columns, deep = t.cols // 8, t.cols // 16
    with ctx.out.unrolled("n_", t.rows // 8), ctx.out.unrolled("k_", 2 * deep):
        ctx.out.line(f"{target.name}[{2 * deep} * n_ + k_] = {source.name}[({columns} * (n_ / 2) + k_) * 2 + n_ % 2];")


def _to_acc(ctx: Context, target: Place, e: Expr) -> None:
    """A 16-bit operand as an accumulator: an `a` is in its order already, a `b` is the inverse of a cast to it."""
    t = e.type
    assert isinstance(t, FragT)
    source = _narrow(ctx, e, t)
    if source.type.form == "a":
        with ctx.out.unrolled("i_", target.count):
            ctx.out.line(f"{target.name}[i_] = {source.name}[i_];")
        return
    columns, deep = t.cols // 8, t.cols // 16
    with ctx.out.unrolled("n_", t.rows // 8), ctx.out.unrolled("k_", 2 * deep):
        ctx.out.line(f"{target.name}[({columns} * (n_ / 2) + k_) * 2 + n_ % 2] = {source.name}[{2 * deep} * n_ + k_];")


def _to_a_8(ctx: Context, target: Place, e: Expr) -> None:
    """Four neighbouring columns a register: two shuffles inside the quad collect them."""
    t = e.type
    assert isinstance(t, FragT)
    source = _narrow(ctx, e, t)
    gather = ctx.use(GATHER_8)
    blocks, columns = target.count // (t.cols // 8), t.cols // 8
    pairs = columns // 2
    with ctx.out.unrolled("m_", blocks), ctx.out.unrolled("g_", pairs):
        ctx.out.line(f"const u32 left_ = {source.name}[{columns} * m_ + 2 * g_], right_ = {source.name}[{columns} * m_ + 2 * g_ + 1];")
        # Bytes of a register of `acc`: two columns of the upper row, two of the lower.
        for half, select in ((0, "0x5410"), (1, "0x7632")):
            where = f"({pairs // 2} * m_ + g_ / 2) * 4 + 2 * (g_ % 2) + {half}"
            ctx.out.line(f"{target.name}[{where}] = {gather}(__byte_perm(left_, right_, {select}), lane);")

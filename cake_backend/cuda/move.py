"""Copies by the copy engine and by cp.async: tensor-map loads and stores, bulk copies, arming of barriers."""

from __future__ import annotations

from collections.abc import Callable

from cake_backend.cuda import cp_async, mbarrier, tma
from cake_backend.cuda.addresses import at_stage, linear_column, row_pitch
from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.arming import ArmedSet
from cake_backend.cuda.cluster import axis_of, multicast_mask, size, slice_index
from cake_backend.cuda.congruence import multiple_of
from cake_backend.cuda.context import Context, Rect
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.globals import pointer, stride
from cake_backend.cuda.rings import barrier_address
from cake_backend.cuda.scalars import constant, factor, plus, scalar
from cake_ir.boxes import Box, tma_boxes, transaction_bytes
from cake_ir.derive.issue import meets_to_issue
from cake_ir.derive.transactions import transactions
from cake_ir.layout import LayoutError, ViewLayout
from cake_ir.program import Expr, Op
from cake_ir.types import ViewT


def view_operand(op: Op) -> Expr:
    e = op.operands["view"]
    assert isinstance(e, Expr)
    return e


def coordinates(op: Op) -> tuple[Expr, ...]:
    e = op.operands["coords"]
    assert isinstance(e, tuple)
    return e


def stage_operand(op: Op) -> Expr | None:
    e = op.operands.get("stage")
    return e if isinstance(e, Expr) else None


def slices_of(ctx: Context, op: Op) -> tuple[int, int]:
    """CTAs that share a multicast load, and the cluster axis they lie along."""
    name = op.attrs.get("multicast")
    if not name or size(ctx) == 1:
        return 1, 0
    axis = axis_of(ctx.program, str(name))
    return ctx.program.launch.cluster[axis], axis


def boxes_of(op: Op, r: Rect, layout: ViewLayout, rank: int, slices: int = 1, part: int = 0) -> tuple[Box, ...]:
    """The boxes of a copy, with offsets relative to the rectangle's first row."""
    box = op.attrs.get("box")
    # A column known only at run time is a whole number of panels: its address is added as text.
    col = int(r.col) if r.col.isdigit() else 0
    try:
        return tma_boxes(layout, rank, row=0, rows=r.rows, col=col, cols=r.cols, box=box, slices=slices, slice_index=part)  # type: ignore[arg-type]  # the box is a pair of ints
    except LayoutError as error:
        return not_lowered(f"this copy ({error})", op.span)


def load_bytes(ctx: Context, op: Op) -> tuple[int, str]:
    """Bytes that a load brings to this CTA's barrier: constant part and run-time text."""
    t = view_operand(op).type
    assert isinstance(t, ViewT)
    layout = ctx.layouts[t.view]
    if op.name == "bulk_load":
        n = op.operands["n"]
        assert isinstance(n, Expr)
        value = constant(n)
        if value is not None:
            return value * layout.elem_bits // 8, ""
        return 0, f"{layout.elem_bits // 8}u * (u32){factor(ctx, n)}"
    slices, _ = slices_of(ctx, op)
    r = Rect(t.view, "", "", t.rows, t.cols, t.transposed)
    return transaction_bytes(boxes_of(op, r, layout, len(coordinates(op)), slices), slices), ""


def arm(ctx: Context, armed: ArmedSet) -> None:
    """Announce the bytes of one phase, by the thread that issues its loads."""
    fixed, texts = 0, []
    for op, trips in armed.members:
        size_, text = load_bytes(ctx, op)
        if not trips:
            fixed += size_
            texts += [text] if text else []
            continue
        known = [constant(t) for t in trips]
        if any(t.op == "unknown" for t in trips):
            not_lowered("loads of one phase inside a tile loop", op.span)
        if all(k is not None for k in known) and not text:
            total = size_
            for k in known:
                total *= k or 0
            fixed += total
        else:
            texts.append(" * ".join([f"(u32){factor(ctx, t)}" for t in trips] + [text or f"{size_}u"]))
    total_text = plus(f"{fixed}u" if fixed else "", *texts)
    call = f"{ctx.use(mbarrier.EXPECT_TX)}({barrier_address(ctx, armed.barrier, armed.stage)}, {total_text});"
    ctx.out.line(call if ctx.role.single else f"if (thread == 0) {call}")


def _meet(ctx: Context, op: Op) -> None:
    """The lanes of a warp that does more than issue meet before one of them starts a phase: all of them have returned from their waits."""
    if meets_to_issue(ctx.program, ctx.role.role.name) and any(t.loads[0].op is op for t in transactions(ctx.program)[0]):
        ctx.out.line("__syncwarp();")


def tma_load(ctx: Context, op: Op) -> None:
    """`view.tma_load`: one box a panel, or this CTA's slice of each to all CTAs of a multicast."""
    _meet(ctx, op)
    if (armed := ctx.role.armed.get(op.id)) is not None:
        arm(ctx, armed)
    r = at_stage(ctx, view_operand(op), stage_operand(op))
    layout, coords = ctx.layouts[r.view], coordinates(op)
    slices, axis = slices_of(ctx, op)
    boxes = boxes_of(op, r, layout, len(coords), slices)
    dtype = ctx.program.views[r.view].dtype
    cache = op.attrs.get("cache")
    hint = cache in tma.EVICT_POLICIES
    device = tma.load(len(coords), multicast=slices > 1, hint=hint)
    bar = barrier_address(ctx, str(op.attrs["barrier"]), stage_operand(op))
    shift = boxes_of(op, r, layout, len(coords), slices, 1) if slices > 1 else boxes
    calls = []
    for box, other in zip(boxes, shift, strict=True):
        name = ctx.maps.use(str(op.attrs["tensor"]), dtype, box.extents, layout.swizzle)
        moved = slice_index(ctx, axis) if slices > 1 else ""
        dst = plus(r.base, _column(r, layout), f"{box.smem}u" if box.smem else "", f"{other.smem - box.smem}u * {moved}" if moved else "")
        where = []
        for i, c in enumerate(coords):
            step = other.coords[i] - box.coords[i]
            where.append(_add(ctx, c, box.coords[i], f"{step} * (int){moved}" if step else ""))
        extra = f", {multicast_mask(ctx, axis)}" if slices > 1 else ""
        extra += f", {ctx.use(tma.policy(str(cache)))}()" if hint else ""
        calls.append(f"{ctx.use(device)}({dst}, &{name}, {', '.join(where)}, {bar}{extra});")
    issue(ctx, calls)


def tma_prefetch(ctx: Context, op: Op) -> None:
    """`view.tma_prefetch`: the boxes of a load of the view, to the second-level cache."""
    t, coords = view_operand(op).type, coordinates(op)
    assert isinstance(t, ViewT)
    layout, dtype = ctx.layouts[t.view], ctx.program.views[t.view].dtype
    calls = []
    for box in boxes_of(op, Rect(t.view, "", "", t.rows, t.cols, t.transposed), layout, len(coords)):
        name = ctx.maps.use(str(op.attrs["tensor"]), dtype, box.extents, layout.swizzle)
        calls.append(f"{ctx.use(tma.prefetch(len(coords)))}(&{name}, {', '.join(_add(ctx, c, box.coords[i]) for i, c in enumerate(coords))});")
    issue(ctx, calls)


def _column(r: Rect, layout: ViewLayout) -> str:
    """Text of a run-time column's address; a constant one is in the boxes' offsets already."""
    return "" if r.col.isdigit() else linear_column(r, layout)


def _add(ctx: Context, e: Expr, offset: int, more: str = "") -> str:
    """C text of a coordinate plus offsets."""
    value = constant(e)
    if value is not None and not more:
        return str(value + offset)
    terms = [scalar(ctx, e) if value != 0 else "", str(offset) if offset else "", more]
    return " + ".join(t for t in terms if t) or "0"


def issue(ctx: Context, calls: list[str]) -> None:
    """Statements by the member's issuing thread."""
    if ctx.role.single:
        for c in calls:
            ctx.out.line(c)
    elif len(calls) == 1:
        ctx.out.line(f"if (thread == 0) {calls[0]}")
    else:
        with ctx.out.block("if (thread == 0)"):
            for c in calls:
                ctx.out.line(c)


def tma_store(ctx: Context, op: Op) -> None:
    """`view.tma_store` and `view.tma_reduce`: the boxes and one commit, so that a call is one bulk group."""
    r = at_stage(ctx, view_operand(op), None)
    layout, coords = ctx.layouts[r.view], coordinates(op)
    dtype = ctx.program.views[r.view].dtype
    rank = len(coords)
    device = tma.reduce(rank, str(op.attrs["op"])) if op.name == "tma_reduce" else tma.store(rank)
    commit = f"{ctx.use(tma.COMMIT)}();"
    calls = []
    for box in boxes_of(op, r, layout, rank):
        name = ctx.maps.use(str(op.attrs["tensor"]), dtype, box.extents, layout.swizzle)
        src = plus(r.base, _column(r, layout), f"{box.smem}u" if box.smem else "")
        where = ", ".join(_add(ctx, c, box.coords[i]) for i, c in enumerate(coords))
        calls.append(f"{ctx.use(device)}(&{name}, {src}, {where});")
    rows = op.operands.get("rows")
    if not isinstance(rows, Expr) or constant(rows) == r.rows:
        issue(ctx, [*calls, commit])
        return
    with ctx.out.block("" if ctx.role.single else "if (thread == 0)"):
        with ctx.out.block(f"if ({factor(ctx, rows)} == {r.rows})"):
            for c in calls:
                ctx.out.line(c)
            ctx.out.otherwise()
            ctx.out.line("#pragma unroll 1")
            with ctx.out.block(f"for (int row_ = 0; row_ < {scalar(ctx, rows)}; ++row_)"):
                for c in _single_rows(ctx, op, r, layout, dtype, rank, ctx.use(device)):
                    ctx.out.line(c)
        ctx.out.line(commit)


def _single_rows(ctx: Context, op: Op, r: Rect, layout: ViewLayout, dtype: str, rank: int, device: str) -> list[str]:
    """Boxes of one row, for the ragged end of a sequence: a full box would overwrite the rows behind it."""
    calls = []
    full = boxes_of(op, r, layout, rank)
    axis_r = max((i for b in full for i, n in enumerate(b.extents) if n != 1 and i != _column_axis(b)), default=min(1, rank - 1))
    for box in full:
        if box.coords[axis_r]:
            continue  # rows past the first 256 are reached by the loop over rows
        extents = tuple(1 if i == axis_r else n for i, n in enumerate(box.extents))
        name = ctx.maps.use(str(op.attrs["tensor"]), dtype, extents, layout.swizzle)
        src = plus(r.base, _column(r, layout), f"{box.smem}u" if box.smem else "", f"{row_pitch(layout)}u * row_")
        where = ", ".join(_add(ctx, c, box.coords[i], "row_" if i == axis_r else "") for i, c in enumerate(coordinates(op)))
        calls.append(f"{device}(&{name}, {src}, {where});")
    return calls


def _column_axis(box: Box) -> int:
    return next((i for i, n in enumerate(box.extents) if n != 1), 0)


def bulk_load(ctx: Context, op: Op) -> None:
    """`view.bulk_load`: consecutive elements of a tensor, not clipped."""
    _meet(ctx, op)
    if (armed := ctx.role.armed.get(op.id)) is not None:
        arm(ctx, armed)
    r = at_stage(ctx, view_operand(op), stage_operand(op))
    layout = ctx.layouts[r.view]
    if layout.swizzle:
        not_lowered("a bulk copy into a swizzled view", op.span)
    offset, n = op.operands["offset"], op.operands["n"]
    assert isinstance(offset, Expr) and isinstance(n, Expr)
    size_ = layout.elem_bits // 8
    count = constant(n)
    bytes_ = f"{count * size_}u" if count is not None else f"{size_}u * (u32){factor(ctx, n)}"
    bar = barrier_address(ctx, str(op.attrs["barrier"]), stage_operand(op))
    src = pointer(ctx, str(op.attrs["tensor"]))
    ctx.need_alignment(str(op.attrs["tensor"]), op.span)
    issue(ctx, [f"{ctx.use(tma.BULK_LOAD)}({plus(r.base, linear_column(r, layout))}, {src} + {factor(ctx, offset)}, {bytes_}, {bar});"])


def bulk_store(ctx: Context, op: Op) -> None:
    """`view.bulk_store`: one copy a row and one commit; never past the rows that are asked for."""
    r = at_stage(ctx, view_operand(op), None)
    layout, coords, tensor = ctx.layouts[r.view], coordinates(op), str(op.attrs["tensor"])
    per = 16 * 8 // layout.elem_bits
    if layout.swizzle or r.transposed:
        not_lowered("a bulk copy out of a swizzled or transposed view", op.span)
    if r.cols % per or not multiple_of(ctx.program, ctx.role.role.name, coords[0], per):
        not_lowered(f"a bulk copy of rows that are not whole 16-byte units of {per}", op.span)
    ctx.need_alignment(tensor, op.span)
    rank = len(coords)
    terms = [pointer(ctx, tensor)]
    for axis in range(rank - 1, 0, -1):
        row = " + row_" if axis == 1 else ""
        if constant(coords[axis]) != 0 or row:
            terms.append(f"(u64)({scalar(ctx, coords[axis])}{row}) * {stride(ctx, tensor, rank - 1 - axis)}")
    if constant(coords[0]) != 0:
        terms.append(operand(scalar(ctx, coords[0])))
    rows = op.operands["rows"]
    assert isinstance(rows, Expr)
    src = plus(r.base, linear_column(r, layout), f"{row_pitch(layout)}u * row_")
    most = scalar(ctx, rows) if constant(rows) is not None else f"min({scalar(ctx, rows)}, {r.rows})"
    with ctx.out.block("" if ctx.role.single else "if (thread == 0)"):
        ctx.out.line("#pragma unroll 1")
        with ctx.out.block(f"for (int row_ = 0; row_ < {most}; ++row_)"):
            ctx.out.line(f"{ctx.use(tma.BULK_STORE)}({' + '.join(terms)}, {src}, {r.cols * layout.elem_bits // 8}u);")
        ctx.out.line(f"{ctx.use(tma.COMMIT)}();")


HANDLERS: dict[str, Callable[[Context, Op], None]] = {
    "tma_load": tma_load, "tma_prefetch": tma_prefetch, "tma_store": tma_store, "tma_reduce": tma_store, "bulk_load": bulk_load, "bulk_store": bulk_store, **cp_async.HANDLERS,
}  # fmt: skip

__all__ = ["HANDLERS", "arm", "operand"]

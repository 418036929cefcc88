"""Shared-memory rectangles and the addresses of their elements."""

from __future__ import annotations

from dataclasses import replace

from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.context import Context, Rect
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.rings import slot_index
from cake_backend.cuda.scalars import constant, plus, scalar, scaled
from cake_ir.layout import SWIZZLES, ViewLayout, stage_stride
from cake_ir.program import Expr
from cake_ir.types import ViewT
from cake_verify.analyses import ranges

ATOM_ROWS = 8
"""Rows after which every swizzle repeats."""


def rect(ctx: Context, e: Expr) -> Rect:
    """The rectangle that a view expression names."""
    if e.op == "var":
        bound = ctx.lookup(str(e.attrs["name"]))
        assert isinstance(bound, Rect)
        return bound
    t = e.type
    assert isinstance(t, ViewT)
    if e.op == "view":
        base = ctx.lookup(f"view {t.view}")
        assert isinstance(base, Rect)
        return base
    inner = rect(ctx, e.args[0])
    layout = ctx.layouts[t.view]
    if e.op == "stage":
        index = slot_index(ctx, e.args[1])
        offset = "" if index == "0u" or layout.stages == 1 else _times(stage_stride(layout), index)
        return Rect(t.view, plus(inner.base, offset), inner.col, inner.rows, inner.cols, inner.transposed, index, inner.phase)
    if e.op == "T":
        return Rect(inner.view, inner.base, inner.col, inner.rows, inner.cols, not inner.transposed, inner.stage, inner.phase)
    if e.op == "rows":
        offset = scaled(ctx, e.args[1], row_pitch(layout))
        aligned = not layout.swizzle or ranges.of(ctx.program, ctx.role.role.name, e.args[1]).multiple_of(ATOM_ROWS)
        phase = inner.phase if aligned else " + ".join(x for x in (inner.phase, scaled(ctx, e.args[1], 1)) if x)
        return Rect(inner.view, plus(inner.base, offset), inner.col, t.rows, inner.cols, inner.transposed, inner.stage, phase)
    if e.op == "cols":
        start = constant(e.args[1])
        text = "" if start == 0 else scalar(ctx, e.args[1])
        col = text if not inner.col else f"{inner.col} + {text}" if text else inner.col
        return Rect(inner.view, inner.base, col, inner.rows, t.cols, inner.transposed, inner.stage, inner.phase)
    return not_lowered(f"the view expression `{e.op}`", e.span)


def at_stage(ctx: Context, e: Expr, stage: Expr | None) -> Rect:
    """The rectangle of a view operand of a copy: of slot `stage` if the view was not indexed itself."""
    found = rect(ctx, e)
    t = e.type
    assert isinstance(t, ViewT)
    if t.staged or stage is None:
        return found
    layout = ctx.layouts[t.view]
    index = slot_index(ctx, stage, layout.stages)
    offset = "" if index == "0u" else _times(stage_stride(layout), index)
    return Rect(found.view, plus(found.base, offset), found.col, found.rows, found.cols, found.transposed, index, found.phase)


def _times(stride: int, index: str) -> str:
    number = index.rstrip("u")
    return f"{stride * int(number)}u" if number.isdigit() else f"{stride}u * {index}"


def row_pitch(layout: ViewLayout) -> int:
    """Bytes from one row to the next inside a panel (the whole row without a swizzle)."""
    return layout.span


def linear_column(r: Rect, layout: ViewLayout) -> str:
    """C text of the byte offset of the rectangle's first column before swizzling; empty for column 0.

    Only for rectangles that start on a panel or whose panel is known; the caller has checked which.
    """
    if not r.col:
        return ""
    size = layout.elem_bits
    value = int(r.col) if r.col.isdigit() else None
    if not layout.swizzle:
        return f"{value * size // 8}u" if value is not None else _bytes(r.col, size)
    per_panel = layout.panel_cols
    if value is not None:
        panel, within = divmod(value, per_panel)
        offset = panel * layout.panel_stride + within * size // 8
        return f"{offset}u" if offset else ""
    if layout.cols == per_panel:
        return _bytes(r.col, size)
    return f"{layout.panel_stride}u * (u32)(({r.col}) / {per_panel}) + {size // 8}u * (u32)(({r.col}) % {per_panel})"


def _bytes(text: str, bits: int) -> str:
    return f"(u32)({text})" if bits == 8 else f"{bits // 8}u * (u32)({text})"


def chunk_address(r: Rect, layout: ViewLayout, row: str, chunk: str, extra_rows: str = "") -> str:
    """C text of the address of 16-byte chunk `chunk` (counted from the rectangle's first column) of row `row`.

    `row` is relative to the rectangle's first row and must be an operand-safe text. The swizzle turns by the row within the view: where
    the first row need not be a multiple of 8, it counts for the turn.
    """
    per_chunk = 128 // layout.elem_bits
    first = "" if not r.col else str(int(r.col) // per_chunk) if r.col.isdigit() else f"(({r.col}) / {per_chunk})"
    where = operand(chunk) if not first or first == "0" else f"({first} + {chunk})"
    if not layout.swizzle:
        return f"{r.base} + {row} * {row_pitch(layout)}u + {where} * 16u"
    mode = SWIZZLES[layout.swizzle]
    chunks = mode.span // 16
    shift = {128: 0, 64: 1, 32: 2}[mode.span]
    within = f"({row} + (u32)({r.phase}))" if r.phase else row
    turn = f"({within} & {chunks - 1}u)" if shift == 0 else f"(({within} >> {shift}) & {chunks - 1}u)"
    if layout.cols == layout.panel_cols:
        return f"{r.base} + {row} * {mode.span}u + (({where} ^ {turn}) << 4)"
    panel = f"{where} / {chunks} * {layout.panel_stride}u"
    return f"{r.base} + {panel} + {row} * {mode.span}u + (({where} % {chunks} ^ {turn}) << 4)"


def element_address(r: Rect, layout: ViewLayout, row: str, col: str) -> str:
    """C text of the address of one element; `row` and `col` are relative to the rectangle and operand-safe."""
    size = layout.elem_bits // 8
    column = col if not r.col else f"{r.col} + {col}"
    if not layout.swizzle:
        line = f" + {row} * {row_pitch(layout)}u" if layout.rows > 1 else ""
        return f"{r.base}{line} + ({column}) * {size}u"
    per_chunk = 16 // size
    inner = replace(r, col="")
    chunk = chunk_address(inner, layout, row, f"({column}) / {per_chunk}")
    return f"{chunk} + ({column}) % {per_chunk} * {size}u"

"""D015: a view that can be laid out: whole panels, aligned where the swizzle repeats, in every stage."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.layout import SWIZZLES, stage_stride, view_bytes, view_problem
from cake_ir.placement import view_layout
from cake_ir.program import Program, View
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D015",
    title="a view that no layout can give",
    statement="A row of a swizzled view is a whole number of swizzle spans, and the view and each of its stages start on a multiple of the bytes after which the swizzle repeats: "
    "1,024 for \"128b\", 512 for \"64b\", 256 for \"32b\".",
    why="The hardware permutes by absolute address. A tile that starts inside a pattern is written with one permutation and read with another: wrong numbers, no message.",
    failing=edit(TILE, ("offset=8192", "offset=8320"), ("lm.smem(24576)", "lm.smem(25600)")),
    passing=TILE,
    limits="Unswizzled views need only the alignment of their element here; what copies and MMAs ask is H003 and D016.",
    sources=("HW044",),
)


def check(program: Program) -> Iterator[Fault]:
    for v in program.views.values():
        problem = view_problem(view_layout(v))
        if problem:
            span = v.spans.get("offset", v.span) if problem.startswith("offset") else v.span
            yield Fault("D015", f"`{v.name}`: {problem}", span, help=_help(v), fixes=_fixes(v), facts={"view": v.name, "offset": v.offset, "swizzle": v.swizzle})


def _help(v: View) -> str:
    """What to change, where the message does not say it."""
    layout = view_layout(v)
    mode = SWIZZLES.get(v.swizzle or "")
    if mode is None:
        return "align the view and its stages to the element" if v.swizzle is None else ""
    if layout.row_bytes % mode.span:
        columns = -(-layout.row_bytes // mode.span) * mode.span * 8 // layout.elem_bits
        return f"use rows of {columns} columns, or no swizzle"
    return f"start the view, and each of its stages, on a multiple of {mode.pattern} bytes"


def _fixes(v: View) -> tuple[Fix, ...]:
    layout = view_layout(v)
    mode = SWIZZLES.get(v.swizzle or "")
    if mode is None or layout.row_bytes % mode.span:
        fits = [name for name, m in SWIZZLES.items() if layout.row_bytes % m.span == 0]
        span = v.spans.get("swizzle")
        return (Fix((Edit(span, f'"{fits[0]}"'),), "likely", f"swizzle by {fits[0]}"),) if fits and span else ()
    if v.offset % mode.pattern and "offset" in v.spans:
        up = -(-v.offset // mode.pattern) * mode.pattern
        return (Fix((Edit(v.spans["offset"], str(up)),), "idea", f"start at {up}; whatever lies behind moves too"),)
    if layout.stages > 1 and stage_stride(layout) % mode.pattern:
        up = -(-max(stage_stride(layout), view_bytes(layout)) // mode.pattern) * mode.pattern
        if v.stage_bytes is None:
            at = v.span.end()
            here = type(at)(at.line, at.column - 1, at.line, at.column - 1)
            return (Fix((Edit(here, f", stage_bytes={up}"),), "idea", "pad the stages; the pool grows"),)
        return (Fix((Edit(v.spans["stage_bytes"], str(up)),), "idea", "pad the stages; the pool grows"),)
    return ()

"""D016: shared-memory operands are laid out as the tensor core reads them."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.descriptors import copy_problem, operand_problem
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.layout import SWIZZLES, view_problem
from cake_ir.program import Expr, Program, View
from cake_ir.span import Span
from cake_ir.targets import target
from cake_ir.types import ViewT
from cake_verify.analyses.ranges import Range
from cake_verify.analyses.rectangles import Rectangle, rectangles
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D016",
    title="the MMA does not read a view like this",
    statement="A shared-memory operand of wgmma or tcgen05 is part of a swizzled view: whole groups of 8 rows, K a multiple of one instruction's K, columns that start on an "
    "instruction's K (or on a panel, where the view is read transposed). What `lm.tmem_copy` reads is laid out alike, not transposed, or in rows of 16 bytes without a swizzle.",
    why="The instruction finds its operand through a descriptor of a few numbers. A rectangle that these numbers cannot describe is read from wrong places.",
    failing=edit(TILE, ("shape=(128, 64), dtype=lm.bf16, swizzle=\"128b\"", "shape=(128, 64), dtype=lm.bf16")),
    passing=TILE,
    limits="Origins are judged by interval and congruence: what cannot be shown to be misaligned is accepted.",
    sources=("HW061", "HW086", "HW089"),
)

TARGETED = True


def check(program: Program) -> Iterator[Fault]:
    told: set[tuple[str, str]] = set()
    for site in sites(program).of("mma", "tmem_copy"):
        op = site.op
        family = "copy" if op.name == "tmem_copy" else str(op.attrs["kind"])
        if family == "mma_sync" or not _exists(program, family):
            continue
        for name in ("view",) if family == "copy" else ("a", "b"):
            e = op.operands[name]
            if not isinstance(e, Expr) or not isinstance(e.type, ViewT):
                continue
            for r in rectangles(program, site.role.name, e):
                problem = None if view_problem(r.layout) else _problem(r, family)
                if not problem or (r.name, problem) in told:
                    continue
                told.add((r.name, problem))
                related = [(r.view.span, "declared here"), *[(s, f"filled by `{n}`") for s, n in _fills(program, r.view)][:2]]
                role = "copied to tensor memory" if family == "copy" else f"`{name}` of this MMA"
                yield Fault("D016", f"`{r.name}` cannot be {role}: {problem}", op.spans.get(name, op.span), tuple(related), _help(r), _fixes(r),
                            {"view": r.name, "operand": name, "swizzle": r.view.swizzle, "kind": family})  # fmt: skip


def _exists(program: Program, family: str) -> bool:
    """Whether the target has the instruction at all; H001 says so where it does not."""
    return not program.target or target(program.target).has({"wgmma": "WGMMA", "tcgen05": "TCGEN05", "copy": "TCGEN05"}[family])


def _problem(r: Rectangle, family: str) -> str | None:
    if family == "copy":
        return copy_problem(r.layout, _sample(r.row, 8), r.rows, _sample(r.col, 256 // r.layout.elem_bits), r.cols, r.transposed)
    tf32 = r.view.dtype == "tf32"
    panel = r.layout.panel_cols if r.transposed else 256 // r.layout.elem_bits
    return operand_problem(r.layout, _sample(r.row, 8), r.rows, _sample(r.col, panel), r.cols, r.transposed, family, tf32)


def _sample(r: Range, n: int) -> int:
    """A value that the origin takes and that is no multiple of n, if there is one, else 0."""
    return r.worst_for(n) or 0


def _fills(program: Program, v: View) -> Iterator[tuple[Span, str]]:
    for op in program.ops:
        e = op.operands.get("view")
        if op.name in ("tma_load", "tma_gather", "cp_async", "store") and isinstance(e, Expr) and isinstance(e.type, ViewT) and e.type.view == v.name:
            yield op.span, op.name


def _help(r: Rectangle) -> str:
    if r.view.swizzle is None:
        return "the copies and stores that fill the view follow its swizzle by themselves"
    return f"cut operands at whole panels of {r.layout.panel_cols} columns and groups of 8 rows, or use a narrower swizzle"


def _fixes(r: Rectangle) -> tuple[Fix, ...]:
    if r.view.swizzle is not None:
        return ()
    fits = next((n for n, m in SWIZZLES.items() if r.layout.row_bytes % m.span == 0 and r.view.offset % m.pattern == 0), None)
    if fits is None:
        return ()
    if "swizzle" in r.view.spans:
        return (Fix((Edit(r.view.spans["swizzle"], f'"{fits}"'),), "certain", f"swizzle by {fits}"),)
    at = r.view.span.end()
    return (Fix((Edit(Span(at.line, at.column - 1, at.line, at.column - 1), f', swizzle="{fits}"'),), "certain", f"swizzle by {fits}"),)

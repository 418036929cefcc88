"""H003: every tensor copy can be made of boxes that the copy engine takes."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.boxes import GATHERED, gather_boxes, tma_boxes
from cake_ir.fault import Fault, Fix
from cake_ir.layout import LayoutError, view_problem
from cake_ir.program import Expr, Op, Program
from cake_verify.analyses import edits
from cake_verify.analyses.rectangles import Rectangle, rectangles
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

TARGETED = False

PAGE = Page(
    code="H003",
    title="no box of the copy engine moves this rectangle",
    statement="The rectangle of a `tma_load` or `tma_store` splits into boxes: at most 256 elements an axis, rows of a multiple of 16 bytes, landing on multiples "
    "of 128 bytes in every stage; of swizzled views whole panels and groups of 8 rows. A `tma_gather` copies boxes of four rows.",
    why="The box and the swizzle are part of the tensor map. A map that breaks these rules is refused when it is encoded, and a box that lands between two swizzle atoms is "
    "written permuted.",
    failing=edit(TILE, ("b = pool.view(offset=8192, shape=(128, 64), dtype=lm.bf16, swizzle=\"128b\")",
                        "b = pool.view(offset=8192, shape=(128, 64), dtype=lm.bf16, swizzle=\"128b\")\n    n = pool.view(offset=24640, shape=(16,), dtype=lm.f32)"),
                 ("C: LM.gmem2d[LM.f32]", "C: LM.gmem2d[LM.f32], N: LM.tma1d[LM.f32]"), ("lm.smem(24576)", "lm.smem(24832)"),
                 ("        b.tma_load", "        n.tma_load(N, coords=(0,), stage=s, barrier=full)\n        b.tma_load")),
    passing=TILE,
    limits="Origins that depend on run-time values are taken at the alignment that can be derived; strides and base addresses are checked by the launcher.",
    sources=("HW043", "HW044"),
)

COPIES = ("tma_load", "tma_prefetch", "tma_store", "tma_reduce", "tma_gather")


def check(program: Program) -> Iterator[Fault]:
    for site in sites(program).of(*COPIES):
        op = site.op
        view = op.operands.get("view")
        if not isinstance(view, Expr):
            continue
        for r in rectangles(program, site.role.name, view):
            problem = None if view_problem(r.layout) else box_problem(program, op, r)
            if problem:
                yield Fault("H003", f"`{r.name}` cannot be copied by `{op.name}`: {problem}", op.span, ((r.view.span, "declared here"),), fixes=_padded(r, problem),
                            facts={"view": r.name, "tensor": str(op.attrs["tensor"]), "rows": r.rows, "cols": r.cols})  # fmt: skip
                break


def _padded(r: Rectangle, problem: str) -> tuple[Fix, ...]:
    """The distance of stages that lets every box land where it may, where only that is wrong."""
    _, found, rest = problem.rpartition("stage_bytes=")
    if not found:
        return ()
    text = rest.partition(" ")[0]
    if "stage_bytes" in r.view.spans:
        return (edits.replace(r.view.spans["stage_bytes"], text),)
    return (edits.add_argument(r.view.span, f"stage_bytes={text}"),)


def box_problem(program: Program, op: Op, r: Rectangle) -> str | None:
    """Why the rectangle does not split into boxes, taking the lowest origin it can have."""
    rank = program.tensors[str(op.attrs["tensor"])].rank
    box = op.attrs.get("box")
    if r.transposed:
        return "the copy engine does not transpose, leave `.T` out"
    row = r.row.exact if r.row.exact is not None else r.row.worst_for(8 if r.layout.swizzle else 1) or 0
    col = r.col.exact if r.col.exact is not None else r.col.worst_for(r.layout.panel_cols if r.layout.swizzle else 1) or 0
    if row + r.rows > r.layout.rows or col + r.cols > r.layout.cols:
        return None  # D014 says so
    try:
        if op.name == "tma_gather":
            row = r.row.exact if r.row.exact is not None else r.row.worst_for(GATHERED) or 0
            gather_boxes(r.layout, row=row, rows=r.rows, col=col, cols=r.cols)
            return None
        tma_boxes(r.layout, rank, row=row, rows=r.rows, col=col, cols=r.cols, box=box, slices=1)  # type: ignore[arg-type]  # a shape by its kind
    except LayoutError as error:
        return str(error)
    return None

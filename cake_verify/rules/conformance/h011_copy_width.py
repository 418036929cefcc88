"""H011: cp.async moves whole 16-byte chunks."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.layout import view_problem
from cake_ir.program import Expr, Program
from cake_verify.analyses.rectangles import rectangles
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import SYNC_MMA, edit

TARGETED = False

PAGE = Page(
    code="H011",
    title="a copy of part of a 16-byte chunk",
    statement="The rectangle of `view.cp_async` has rows of a multiple of 16 bytes, and each starts on a multiple of 16 bytes of shared memory.",
    why="A thread copies 16 bytes at a time; an address that is not a multiple of the size is a misaligned access, which no assembler checks.",
    failing=edit(SYNC_MMA, ("a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle=\"64b\")", "a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle=\"64b\")\n    n = pool.view(offset=8192, shape=(6,), dtype=lm.f32)"),
                 ("C: LM.gmem2d[LM.f32]", "C: LM.gmem2d[LM.f32], N: LM.gmem1d[LM.f32]"), ("        lm.cp_commit()", "        n.cp_async(N, coords=(0,))\n        lm.cp_commit()"),
                 ("lm.smem(12288)", "lm.smem(16896)"), ("offset=4096", "offset=8704")),
    passing=SYNC_MMA,
    limits="Addresses in global memory depend on strides, which the launcher checks.",
    sources=("HW030", "HW100"),
)


def check(program: Program) -> Iterator[Fault]:
    for site in sites(program).of("cp_async", "cp_async_rows"):
        view = site.op.operands.get("view")
        if not isinstance(view, Expr):
            continue
        for r in rectangles(program, site.role.name, view):
            bits = DTYPES[r.view.dtype].container_bits
            if view_problem(r.layout):
                continue
            per = 128 // bits
            if r.cols % per:
                yield Fault("H011", f"a row of `{r.name}` copied by `{site.op.name}` is {r.cols * bits // 8} bytes, chunks are 16", site.op.span, ((r.view.span, "declared here"),),
                            f"copy a multiple of {per} columns", (), {"expected": per, "found": r.cols})  # fmt: skip
            elif r.col.worst_for(per) or r.layout.offset % 16 or (not r.layout.swizzle and r.layout.rows > 1 and r.layout.row_bytes % 16):
                yield Fault("H011", f"rows of `{r.name}` do not start on multiples of 16 bytes, `{site.op.name}` moves 16 at a time", site.op.span, ((r.view.span, "declared here"),),
                            "align the view's offset and row length to 16 bytes", (), {"offset": r.layout.offset, "row_bytes": r.layout.row_bytes})  # fmt: skip
            else:
                continue
            break

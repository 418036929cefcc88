"""H018: matrix loads of a width and orientation that the target has."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.layout import view_problem
from cake_ir.program import Expr, Program
from cake_ir.targets import target
from cake_ir.types import ViewT
from cake_verify.analyses.rectangles import rectangles
from cake_verify.analyses.sites import sites
from cake_verify.analyses.wording import exists_on
from cake_verify.rule import Page
from cake_verify.rules.examples import SYNC_MMA, edit

PAGE = Page(
    code="H018",
    title="a matrix load that the hardware does not do",
    statement="`view.ldmatrix` reads rows of 16 bytes that start on multiples of 16 bytes; a `.T` view of 8-bit elements only where the target transposes them.",
    why="A matrix load takes eight row addresses of 16 bytes each. One that is 8 bytes off is a misaligned access (measured on an H200), which the assembler does not see.",
    failing=edit(SYNC_MMA, ("a.cols(16 * k, 16)", "a.cols(16 * k + 4, 16)"), ("lm.static_range(2)", "lm.static_range(1)")),
    passing=SYNC_MMA,
    limits="Origins are judged by interval and congruence; what cannot be shown to be misaligned is accepted.",
    sources=("HW020",),
)


def check(program: Program) -> Iterator[Fault]:
    for site in sites(program).of("ldmatrix"):
        op = site.op
        view = op.operands.get("view")
        if not isinstance(view, Expr) or not isinstance(view.type, ViewT):
            continue
        bits = DTYPES[view.type.dtype].bits
        if view.type.transposed and bits == 8 and program.target and not target(program.target).has("LDMATRIX_B8"):
            yield Fault("H018", f"{program.target} has no transposed ldmatrix of 8-bit elements; {exists_on('LDMATRIX_B8')}", op.span, (),
                        "store the operand K-major, or use `.load(..)`", (), {"target": program.target})  # fmt: skip
            continue
        for r in rectangles(program, site.role.name, view):
            per = 128 // bits
            if not view_problem(r.layout) and (r.col.worst_for(per) or r.layout.offset % 16 or (not r.layout.swizzle and r.layout.row_bytes % 16)):
                yield Fault("H018", f"rows of `{r.name}` do not start on multiples of 16 bytes, `ldmatrix` reads 16 at a time", op.span, ((r.view.span, "declared here"),),
                            f"start on a multiple of {per} columns", (), {"expected": per, "offset": r.layout.offset})  # fmt: skip
                break

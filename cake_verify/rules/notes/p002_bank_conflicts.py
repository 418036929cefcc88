"""P002: matrix loads that meet in one bank."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.layout import SWIZZLES, ldmatrix_conflicts, view_problem
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.rectangles import rectangles
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import SYNC_MMA, edit

PAGE = Page(
    code="P002",
    title="bank conflicts",
    statement="The eight 16-byte rows of a matrix load or store lie in different banks.",
    why="Rows in the same banks are served one after the other: an unswizzled row of 128 bytes or more makes a matrix load eight times as long.",
    failing=edit(SYNC_MMA, ("a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle=\"64b\")", "a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16)")),
    passing=SYNC_MMA,
    sources=("HW021",),
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    told: set[str] = set()
    for site in sites(program).of("ldmatrix", "load", "store"):
        op = site.op
        view = op.operands.get("view")
        x = op.operands.get("x")
        t = op.type if isinstance(op.type, FragT) else x.type if isinstance(x, Expr) else None
        if not isinstance(view, Expr) or not isinstance(t, FragT) or t.form not in ("acc", "a", "b") or DTYPES[t.dtype].bits != 16:
            continue
        for r in rectangles(program, site.role.name, view):
            if r.name in told or view_problem(r.layout) or r.layout.rows < 8:
                continue
            degree = ldmatrix_conflicts(r.layout)
            if degree > 1:
                told.add(r.name)
                fits = next((n for n, m in SWIZZLES.items() if r.layout.row_bytes % m.span == 0), None)
                fix = (Fix((Edit(r.view.spans["swizzle"], f'"{fits}"'),), "likely", f"swizzle by {fits}"),) if fits and "swizzle" in r.view.spans else ()
                yield Fault("P002", f"each matrix of this `{op.name}` meets {degree} times in one bank of `{r.name}`", op.span, ((r.view.span, "declared here"),),
                            f'declare the view with swizzle="{fits}"' if fits else "pad the rows", fix, {"degree": degree, "view": r.name}, severity="note")  # fmt: skip

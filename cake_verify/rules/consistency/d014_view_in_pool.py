"""D014: views lie inside their pools, and slices inside their views."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.layout import end_offset
from cake_ir.ops import OF_VIEWS
from cake_ir.placement import view_layout
from cake_ir.program import Expr, Program
from cake_ir.types import ViewT
from cake_verify.analyses.rectangles import Rectangle, rectangles
from cake_verify.analyses.sites import Site, sites
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D014",
    title="a view reaches past its pool",
    statement="All stages of a view lie inside its pool, and `.rows(lo, n)` and `.cols(lo, n)` inside the view for every value that `lo` can take.",
    why="What lies behind the pool are the barriers. Overwriting one hangs the block or corrupts a later phase.",
    failing=edit(TILE, ("lm.smem(24576)", "lm.smem(24064)")),
    passing=TILE,
    limits="A slice whose origin depends on a run-time value without bounds is checked by the walk, for the values it takes there.",
)


def check(program: Program) -> Iterator[Fault]:
    for v in program.views.values():
        pool, end = program.pools[v.pool], end_offset(view_layout(v))
        if end > pool.nbytes:
            fix = Fix((Edit(pool.span, f"lm.smem({end})"),), "likely", f"a pool of {end} bytes")
            yield Fault("D014", f"`{v.name}` ends at byte {end:,}, `{pool.name}` has {pool.nbytes:,}", v.span, ((pool.span, f"{pool.nbytes:,} bytes"),),
                        "enlarge the pool or move the view", (fix,), {"expected": pool.nbytes, "found": end})  # fmt: skip
    for site in sites(program).of(*OF_VIEWS):
        if len(site.path) > len(site.loops):
            continue  # what a condition excludes is not known here
        for e in site.op.operands.values():
            if isinstance(e, Expr) and isinstance(e.type, ViewT):
                for r in rectangles(program, site.role.name, e):
                    fault = _outside(site, e, r)
                    if fault:
                        yield fault
                        break


def _outside(site: Site, e: Expr, r: Rectangle) -> Fault | None:
    for what, at, n, extent in (("rows", r.row, r.rows, r.layout.rows), ("columns", r.col, r.cols, r.layout.cols)):
        if not at.tight:
            continue
        if at.hi + n > extent or at.lo < 0:
            lo = int(at.lo if at.lo < 0 else at.hi)
            return Fault("D014", f"{what} {lo} to {lo + n - 1} reach outside `{r.name}`, which has {extent}", e.span, ((r.view.span, "declared here"),),
                         f"`{site.role.name}` has {site.role.members} members" if site.role.members > 1 else "", (), {"expected": extent, "found": lo + n})  # fmt: skip
    return None

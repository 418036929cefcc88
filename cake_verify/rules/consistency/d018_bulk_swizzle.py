"""D018: bulk copies move bytes in address order."""

from collections.abc import Iterator

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Expr, Program
from cake_ir.types import ViewT
from cake_verify.analyses.rectangles import rectangles
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page

PAGE = Page(
    code="D018",
    title="a bulk copy of a swizzled view",
    statement="`view.bulk_load`, `view.bulk_store` and other untiled copies take a view without a swizzle; no copy transposes.",
    why="Only copies through a tensor map undo a swizzle. A bulk copy hands the permuted chunks on as they lie: a wrong order, without a message.",
    failing='''
@cake.schedule(target="sm_90a")
def rows(lm, X: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16]):
    pool = lm.smem(8192)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        a.store(lm.load(X, coords=(0, 0), shape=(64, 64)))
        lm.fence_proxy()
        lm.sync(cta)
        a.bulk_store(Y, coords=(0, 0), rows=64)
        lm.store_wait(pending=0)
''',
    passing='''
@cake.schedule(target="sm_90a")
def rows(lm, X: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16]):
    pool = lm.smem(8192)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16)
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        a.store(lm.load(X, coords=(0, 0), shape=(64, 64)))
        lm.fence_proxy()
        lm.sync(cta)
        a.bulk_store(Y, coords=(0, 0), rows=64)
        lm.store_wait(pending=0)
''',
)


def check(program: Program) -> Iterator[Fault]:
    for site in sites(program).of("bulk_load", "bulk_store", "cp_async", "cp_async_rows"):
        view = site.op.operands.get("view")
        if not isinstance(view, Expr):
            continue
        if isinstance(view.type, ViewT) and view.type.transposed:
            yield Fault("D018", f"`{site.op.name}` moves bytes in address order, `{view.type.view}` is read transposed here", site.op.span,
                        help="leave `.T` out, and read the view that way afterwards", facts={"view": view.type.view})  # fmt: skip
            continue
        if not site.op.name.startswith("bulk_"):
            continue
        for r in rectangles(program, site.role.name, view):
            if r.view.swizzle is not None:
                span = r.view.spans.get("swizzle", r.view.span)
                yield Fault("D018", f"`{site.op.name}` moves bytes in address order, but `{r.name}` is swizzled by {r.view.swizzle}", site.op.span, ((span, "swizzled here"),),
                            "use a copy through a tensor map, or an unswizzled view", (Fix((Edit(span, "None"),), "likely", "no swizzle"),), {"view": r.name})  # fmt: skip
                break

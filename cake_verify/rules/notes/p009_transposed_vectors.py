"""P009: a transposed view is read element by element into vectors."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import ViewT
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page

PAGE = Page(
    code="P009",
    title="an element-wise transposed read",
    statement="`view.T.load(form=\"vec\")` gathers one element at a time.",
    why="Neighbours of a vector lie a row apart in memory, so that no wide access exists. A matrix load transposes for nothing.",
    failing='''
@cake.schedule(target="sm_90a")
def turn(lm, X: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16]):
    pool = lm.smem(8192)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        a.store(lm.load(X, coords=(0, 0), shape=(64, 64)))
        lm.sync(cta)
        lm.store(Y, a.T.load(form="vec"), coords=(0, 0))
''',
    passing='''
@cake.schedule(target="sm_90a")
def turn(lm, X: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16]):
    pool = lm.smem(8192)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        a.store(lm.load(X, coords=(0, 0), shape=(64, 64)))
        lm.sync(cta)
        lm.store(Y, a.T.load(form="acc"), coords=(0, 0))
''',
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    for s in sites(program).of("load"):
        view = s.op.operands.get("view")
        if s.op.attrs.get("form") == "vec" and isinstance(view, Expr) and isinstance(view.type, ViewT) and view.type.transposed:
            yield Fault("P009", f"`{view.type.view}` is read transposed into vectors, one element at a time", s.op.span, (), _instead(view.type.dtype), (),
                        {"view": view.type.view}, severity="note")  # fmt: skip


def _instead(dtype: str) -> str:
    """What reads a view of this type transposed in one go."""
    return 'load it with form="acc": a matrix load transposes' if DTYPES[dtype].bits == 16 else "matrix loads transpose 16-bit elements only: store the tile the other way round, or pad its rows so that the reads fall on different banks"

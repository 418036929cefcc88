"""D005: a tensor is one dtype wherever it meets shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.ops import taking
from cake_ir.program import Expr, Program
from cake_ir.span import Span
from cake_ir.types import ViewT
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D005",
    title="one tensor, two dtypes",
    statement="A tensor whose annotation names no dtype takes that of the views it is copied to and from; all of them must agree.",
    why="The dtype is part of the tensor map. Two views of different dtypes read the same bytes as different numbers, without any message.",
    failing=edit(TILE, ("A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16]", "A: LM.tma2d, B: LM.tma2d"), ("shape=(128, 64), dtype=lm.bf16", "shape=(128, 64), dtype=lm.f16"),
                 ("b.tma_load(B,", "b.tma_load(A,"), ("lm.mma(acc, a, b, init=True)", "lm.mma(acc, b.rows(0, 64), b, init=True)")),
    passing=TILE,
)


_VIEWS = taking("view")


def check(program: Program) -> Iterator[Fault]:
    first: dict[str, tuple[str, Span]] = {}
    for op in (s.op for s in sites(program).of(*_VIEWS)):
        view, tensor = op.operands.get("view"), op.attrs.get("tensor")
        if not isinstance(view, Expr) or not isinstance(view.type, ViewT) or not isinstance(tensor, str):
            continue
        dtype, span = first.setdefault(tensor, (view.type.dtype, op.span))
        if dtype != view.type.dtype:
            yield Fault("D005", f"`{tensor}` is copied as {view.type.dtype} here and as {dtype} elsewhere", op.span, ((span, f"{dtype} here"),),
                        f"give `{tensor}` a dtype in its annotation", (), {"expected": dtype, "found": view.type.dtype})  # fmt: skip

"""D023: a matrix load of this width."""

from cake_verify.rule import Page
from cake_verify.rules.examples import SYNC_MMA, edit

PAGE = Page(
    code="D023",
    title="a matrix load of this width",
    statement="`ldmatrix` moves 8- and 16-bit elements, and operands of tf32 (forms `a` and `b`) as they are stored.",
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(
        SYNC_MMA,
        ("A: LM.gmem2d[LM.bf16]", "A: LM.gmem2d[LM.f32]"),
        ("a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle=\"64b\")", "a = pool.view(offset=0, shape=(64, 16), dtype=lm.f32, swizzle=\"64b\")"),
        ("a.cols(16 * k, 16)", "a.cols(8 * k, 8)"),
    ),
    passing=SYNC_MMA,
)

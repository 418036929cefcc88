"""D039: block scales are those of their operand: every row, and every block of K."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import BLOCK_SCALED, edit

PAGE = Page(
    code="D039",
    title="block scales that do not cover their operand",
    statement="Both operands of a product have scales or none has, both of one block, dtype and layout; they lie in tensor memory or in row vectors, and there is one for each row and each block of K of the product, "
    "from number `first` of a word of four on.",
    why="The instruction finds scales by position alone: with one block too few it takes those of other rows or of other elements, which are in range and plausible, and every sum is wrong.",
    failing=edit(BLOCK_SCALED, ('lm.scales(tb, block=32, dtype=lm.ue8m0, layout="tmem_128x4"))', 'lm.scales(tb, block=16, dtype=lm.ue8m0, layout="tmem_128x4"))')),
    passing=BLOCK_SCALED,
    limits="Which dtypes, blocks and layouts a target applies is H025; whether the scales are those of the same rows and the same stretch of K is S045.",
    sources=("HW012", "HW086", "HW091"),
)

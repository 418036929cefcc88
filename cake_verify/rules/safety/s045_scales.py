"""S045: block scales are those of the elements that they scale."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import BLOCK_SCALED, edit

PAGE = Page(
    code="S045",
    title="scales of other elements",
    statement="A product takes each operand's block scales for the rows and the stretch of K that the operand covers: scales move with their operand, word by word along K and tile by tile along the rows, and count from where it does.",
    why="Everything is synchronised, shapes and dtypes agree, and every sum is wrong by factors that look like noise: a word of scales of the block before, of another tile, or of the other operand.",
    failing=edit(BLOCK_SCALED, ("sa.tma_load(SA, coords=(0, 0, k, 0)", "sa.tma_load(SA, coords=(0, 0, k + 1, 0)")),
    passing=BLOCK_SCALED,
    limits="Seen where scales are loaded by a tensor map (without a box), in bulk, or as row vectors, and where the operand's axes have names. Nothing is said of scales that the kernel computes, "
    "and a tensor with one place along an axis may serve all of it.",
    sources=("HW091",),
)

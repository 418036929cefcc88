"""D025: operands of no MMA."""

from cake_verify.rule import Page
from cake_verify.rules.examples import SYNC_MMA, edit

PAGE = Page(
    code="D025",
    title="operands of no MMA",
    statement="The accumulator is a fragment or tensor memory; `a` is a fragment where `b` is one.",
    why="Each combination is one instruction family: mma.sync, wgmma or tcgen05.",
    failing=edit(SYNC_MMA, ("lm.mma(acc, x, y)", "lm.mma(acc, a.cols(16 * k, 16), y)")),
    passing=SYNC_MMA,
)

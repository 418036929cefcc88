"""N067: a loop in an MMA group."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N067",
    title="a loop in an MMA group",
    statement="An `lm.mma_group` block holds no loops and no branches.",
    why="A group is committed once, behind its last MMA; paths that issue different MMAs would leave different groups in flight.",
    failing=edit(
        TILE,
        ("        lm.mma(acc, a, b, init=True)", "        with lm.mma_group():\n            for i in lm.range(2):\n                lm.mma(acc, a, b, init=(i == 0))"),
    ),
    passing=TILE,
)

"""N041: not a reduction."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N041",
    title="not a reduction",
    statement="Reductions are `add`, `max` and `min`.",
    why="They are associative enough to be done in any order by lanes and warps.",
    failing=edit(TILE, ("        lm.store(C, acc,", "        r = lm.reduce(acc, \"mul\", axis=1)\n        lm.store(C, acc,")),
    passing=TILE,
)

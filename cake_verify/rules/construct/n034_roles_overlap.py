"""N034: two roles share a warp."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N034",
    title="two roles share a warp",
    statement="Every warp belongs to at most one role.",
    why="A warp executes one program.",
    failing=edit(TILE, ("load = lm.role(warps=range(4, 8))", "load = lm.role(warps=range(3, 8))")),
    passing=TILE,
)

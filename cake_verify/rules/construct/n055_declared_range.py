"""N055: outside the range of a declaration."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N055",
    title="outside the range of a declaration",
    statement="Counts and sizes of declarations lie in the range that the message names.",
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(TILE, ("lm.pipeline(stages=1)", "lm.pipeline(stages=0)")),
    passing=TILE,
)

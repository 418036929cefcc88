"""N061: not one of the options."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N061",
    title="not one of the options",
    statement="An option takes one of the values that the message names.",
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(TILE, ("arrive=\"tx\"", "arrive=\"bytes\"")),
    passing=TILE,
    sources=("HW042",),
)

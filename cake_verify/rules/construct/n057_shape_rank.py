"""N057: a shape of another rank."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N057",
    title="a shape of another rank",
    statement="A view is (n,) or (rows, cols), a scheduler has one to four axes, a workspace one to four dimensions.",
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(TILE, ("shape=(128, 64), dtype", "shape=(2, 64, 64), dtype")),
    passing=TILE,
)

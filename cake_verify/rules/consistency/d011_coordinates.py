"""D011: coordinates of another rank."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D011",
    title="coordinates of another rank",
    statement="Coordinates are one a dimension of the tensor, innermost first.",
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(TILE, ("a.tma_load(A, coords=(0, 0)", "a.tma_load(A, coords=(0, 0, 0)")),
    passing=TILE,
    sources=("HW045",),
)

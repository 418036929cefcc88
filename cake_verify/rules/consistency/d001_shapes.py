"""D001: shapes disagree."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D001",
    title="shapes disagree",
    statement=(
        "Operands of an operation have the shapes that it combines: acc (M, N), a (M, K), b (N, K); equal shapes elementwise, "
        "with vectors along rows or columns."
    ),
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(TILE, ("shape=(64, 128), dtype=lm.f32", "shape=(64, 64), dtype=lm.f32")),
    passing=TILE,
)

"""N021: not a number."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N021",
    title="not a number",
    statement="Arithmetic takes numbers: compile-time values, uniform scalars and fragments.",
    why="A view, a slot or a barrier is not a value to calculate with.",
    failing=edit(TILE, ("lm.wait(full, stage=s)", "lm.wait(full, stage=s + 1)")),
    passing=TILE,
)

"""N047: a slice past the end."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N047",
    title="a slice past the end",
    statement="`.rows(lo, n)` and `.cols(lo, n)` stay inside what they slice.",
    why="What lies behind is another tile, or another register.",
    failing=edit(TILE, ("lm.mma(acc, a, b, init=True)", "lm.mma(acc, a.rows(0, 128), b, init=True)")),
    passing=TILE,
    limits="Origins known at run time only are D014 or the walk's.",
)

"""N045: an argument of another kind."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N045",
    title="an argument of another kind",
    statement="Each parameter takes one kind of thing: a view, a fragment, a barrier, a ring, a tensor of the right sort, a number.",
    why="A barrier where a view belongs is a slip of the pen; the message names what is declared.",
    failing=edit(TILE, ("lm.wait(full, stage=s)", "lm.wait(ring, stage=s)")),
    passing=TILE,
)

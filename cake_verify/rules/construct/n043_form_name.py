"""N043: not a register form."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N043",
    title="not a register form",
    statement="Forms are acc, a, b, rows, vec, rowvec and colvec.",
    why="A form fixes which thread owns which element; the list is closed so that every conversion is known.",
    failing=edit(TILE, ("form=\"acc\")", "form=\"tile\")")),
    passing=TILE,
)

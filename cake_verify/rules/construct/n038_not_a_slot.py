"""N038: not a slot."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N038",
    title="not a slot",
    statement="`stage=` and the index of a view take a ring position or an integer.",
    why="A slot is named by the position of a ring, which carries its phase with it.",
    failing=edit(LOOP, ("a[s], b[s], init", "a[acc], b[s], init")),
    passing=LOOP,
)

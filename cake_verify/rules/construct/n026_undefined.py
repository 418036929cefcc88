"""N026: not defined."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N026",
    title="not defined",
    statement="A name is bound before it is used, by a declaration, an assignment or a loop.",
    why="Roles see the declarations and their own names, and nothing of each other's.",
    failing=edit(COPY, ("lm.store(Y, x,", "lm.store(Y, y,")),
    passing=COPY,
)

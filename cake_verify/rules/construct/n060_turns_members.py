"""N060: turns of one member."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N060",
    title="turns of one member",
    statement="Turns pass between two members or more.",
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(COPY, ("    with work", "    turn = lm.turns(work)\n    with work")),
    passing=COPY,
)

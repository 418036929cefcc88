"""N056: an assumption that is false."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N056",
    title="an assumption that is false",
    statement="`lm.assume` of compile-time values holds.",
    why="An assumption on tunables says which variants are meant; this one is not.",
    failing=edit(COPY, ("    work =", "    lm.assume(512 % 7 == 0)\n    work =")),
    passing=COPY,
)

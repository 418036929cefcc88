"""N025: not a value here."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N025",
    title="not a value here",
    statement="`lm`, `LM`, `cake` and the built-in functions are not values.",
    why="They name the language, not things in it.",
    failing=edit(COPY, ("shape=(512,)", "shape=(max,)")),
    passing=COPY,
)

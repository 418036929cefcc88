"""N037: not something to index."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N037",
    title="not something to index",
    statement="Views with stages, fragment arrays, pairs and compile-time tuples are indexed.",
    why="Other values have no parts of that kind.",
    failing=edit(COPY, ("lm.store(Y, x,", "lm.store(Y, x[0],")),
    passing=COPY,
)

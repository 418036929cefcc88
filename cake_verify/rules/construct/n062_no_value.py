"""N062: a value that is not used, or is none."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N062",
    title="a value that is not used, or is none",
    statement="A line that computes a value binds it; an operation without a value is not bound.",
    why="A load that nobody uses is a slip, and costs bandwidth.",
    failing=edit(COPY, ("        lm.store(Y", "        x + 1.0\n        lm.store(Y")),
    passing=COPY,
)

"""N044: arguments missing or too many."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N044",
    title="arguments missing or too many",
    statement="A call gives every required parameter once, by place or by name, and no more.",
    why="Parameters of operations are few and named; the message lists them.",
    failing=edit(COPY, ("lm.store(Y, x, coords=(0,))", "lm.store(Y, x)")),
    passing=COPY,
)

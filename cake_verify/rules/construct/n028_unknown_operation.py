"""N028: not an operation."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N028",
    title="not an operation",
    statement="Operations are those of the vocabulary; views have methods of their own.",
    why="There is no other way to reach an instruction. What the vocabulary cannot say can be proposed.",
    failing=edit(COPY, ("lm.store(Y, x,", "lm.write(Y, x,")),
    passing=COPY,
)

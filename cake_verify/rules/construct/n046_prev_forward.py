"""N046: prev of a negative distance."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N046",
    title="prev of a negative distance",
    statement="`s.prev(i)` looks back: i is 0 or more.",
    why="A later slot has not been stepped to yet.",
    failing=edit(LOOP, ("lm.arrive(empty, stage=s)", "lm.arrive(empty, stage=s.prev(-1))")),
    passing=LOOP,
)

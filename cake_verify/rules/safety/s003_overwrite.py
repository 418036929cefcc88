"""S003: a write may come before earlier accesses have ended."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S003",
    title="a write may come before earlier accesses have ended",
    statement="Whoever writes shared memory knows that every earlier read and write of these bytes has completed: through a barrier that the readers arrived on, or a meeting of all lanes.",
    why="The data that a slower reader was about to use is gone; the result is wrong only when timing is unlucky.",
    failing=edit(LOOP, ("                lm.wait(empty, stage=s)\n", "")),
    passing=LOOP,
    sources=("HW053", "HW071", "HW085", "HW087"),
)

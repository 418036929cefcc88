"""S011: a bulk store may still read its source."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S011",
    title="a bulk store may still read its source",
    statement="A view that a TMA or bulk store reads is rewritten, released or left behind at the end only after `lm.store_wait` and, for other threads, a meeting after it.",
    why="The copy engine reads later than the program: it would store what comes after.",
    failing=edit(LOOP, ("            lm.store_wait(pending=0)\n            lm.sync(own)\n", "            lm.sync(own)\n")),
    passing=LOOP,
    sources=("HW041",),
)

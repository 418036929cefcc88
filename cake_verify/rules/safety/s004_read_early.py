"""S004: a read may come before the write that it needs."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S004",
    title="a read may come before the write that it needs",
    statement="Whoever reads shared memory has waited for the barrier on which the load completes, for its own cp.async groups and then for all threads, or has met the lanes that wrote.",
    why="The read returns what was there before, whenever the copy is slower than usual.",
    failing=edit(LOOP, ("                lm.wait(full, stage=s)\n", "")),
    passing=LOOP,
    sources=("HW031", "HW071", "HW087"),
)

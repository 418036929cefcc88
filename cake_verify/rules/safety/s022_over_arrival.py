"""S022: a phase gets more arrivals than it counts."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S022",
    title="a phase gets more arrivals than it counts",
    statement="Nobody arrives on a barrier more often than once a phase and share.",
    why="The surplus counts for the next phase, which then completes early.",
    failing=edit(LOOP, ("                lm.arrive(empty, stage=s)\n", "                lm.arrive(empty, stage=s)\n                lm.arrive(empty, stage=s)\n")),
    passing=LOOP,
    sources=("HW053",),
)

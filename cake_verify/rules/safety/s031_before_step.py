"""S031: a slot is named before the ring was stepped."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S031",
    title="a slot is named before the ring was stepped",
    statement="`lm.at` and `.prev` look back at slots that have been stepped.",
    why="Before the first step there is no slot: the phase would be that of another round.",
    failing=edit(LOOP, ("                lm.mma_wait(pending=0)\n                lm.arrive(empty, stage=s)\n", "                lm.mma_wait(pending=1)\n                if k > 0:\n                    lm.arrive(empty, stage=s.prev())\n            lm.mma_wait(pending=0)\n            lm.arrive(empty, stage=lm.at(ring))\n"), ("    lm.assume(K > 0)\n", "")),
    passing=LOOP,
)

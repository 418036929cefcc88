"""S021: an arrival may count for an earlier phase."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S021",
    title="an arrival may count for an earlier phase",
    statement="Who arrives for a phase knows that the one before is complete, or gave or knows everything that completes it.",
    why="An arrival carries no phase number: it counts for whatever phase is open.",
    failing=edit(LOOP, ("    load = lm.role(warps=range(4, 8), regs=40)\n", "    load = lm.role(warps=range(4, 8), regs=40)\n    pad = lm.role(warps=range(8, 12), regs=40)\n"), ("regs=232)", "regs=168)"), ("prod=[math], cons=[load], arrive", "prod=[math, pad], cons=[load], arrive"), ("    with math:\n", "    with pad:\n        for t in lm.tiles(sched):\n            for k in lm.range(kt):\n                s = lm.step(ring)\n                lm.arrive(empty, stage=s)\n    with math:\n")),
    passing=LOOP,
    limits="Where the surplus is certain instead of possible it is S022.",
    sources=("HW053",),
)

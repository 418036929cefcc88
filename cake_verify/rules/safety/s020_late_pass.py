"""S020: a later phase may complete while somebody still waits."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S020",
    title="a later phase may complete while somebody still waits",
    statement="A phase completes only when all waits for the phase before it are known to have returned.",
    why="Two phases later the parity is the same again: a waiter that has not looked yet waits for another round.",
    failing=edit(LOOP, ("    load = lm.role(warps=range(4, 8), regs=40)\n", "    load = lm.role(warps=range(4, 8), regs=40)\n    watch = lm.role(warps=range(8, 12), regs=40)\n"), ("regs=232)", "regs=168)"), ("prod=[load], cons=[math], arrive", "prod=[load], cons=[math, watch], arrive"), ("    with math:\n", "    with watch:\n        for t in lm.tiles(sched):\n            for k in lm.range(kt):\n                s = lm.step(ring)\n                lm.wait(full, stage=s)\n    with math:\n")),
    passing=LOOP,
    sources=("HW055", "HW053",),
)

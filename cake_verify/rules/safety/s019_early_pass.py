"""S019: parity may let a wait pass one phase early."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S019",
    title="parity may let a wait pass one phase early",
    statement="Who waits for a phase of a barrier has seen the one before it complete, or gave everything that completes it.",
    why="Hardware waits compare a parity bit: a waiter that skipped a phase sees the old phase's bit and passes at once.",
    failing=edit(LOOP, ("    load = lm.role(warps=range(4, 8), regs=40)\n", "    load = lm.role(warps=range(4, 8), regs=40)\n    watch = lm.role(warps=range(8, 12), regs=40)\n"), ("regs=232)", "regs=168)"), ("prod=[load], cons=[math], arrive", "prod=[load], cons=[math, watch], arrive"), ("prod=[math], cons=[load], arrive", "prod=[math, watch], cons=[load], arrive"), ("    with math:\n", "    with watch:\n        for t in lm.tiles(sched):\n            for k in lm.range(kt):\n                s = lm.step(ring)\n                if k % 4 >= 2:\n                    lm.wait(full, stage=s)\n                lm.arrive(empty, stage=s)\n    with math:\n")),
    passing=LOOP,
    limits="Often the same mistake is met earlier: as a read without a wait (S004), or as an arrival for a phase that may not be open (S021).",
    sources=("HW055",),
)

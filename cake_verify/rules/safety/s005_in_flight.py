"""S005: something is touched while an MMA group uses it."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S005",
    title="something is touched while an MMA group uses it",
    statement="Accumulators, A fragments and slots that a wgmma group uses are not read, written or released before `lm.mma_wait` has retired the group.",
    why="Tensor cores run behind the program: registers and slots are theirs until the wait. The assembler repairs registers by serialising everything and cannot repair slots.",
    failing=edit(LOOP, ("                lm.mma_wait(pending=0)\n                lm.arrive(empty, stage=s)\n", "                lm.arrive(empty, stage=s)\n                lm.mma_wait(pending=0)\n")),
    passing=LOOP,
    limits="Arrays of fragments are followed by element.",
    sources=("HW062", "HW063",),
)

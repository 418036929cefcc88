"""S025: asynchronous work is never waited for."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="S025",
    title="asynchronous work is never waited for",
    statement="Every load, copy, MMA and store that is started is waited for by somebody before the kernel ends.",
    why="The kernel may end, or go on, while the work still writes.",
    failing=edit(TILE, ("        lm.store(C, acc, coords=(0, 0))\n", "        lm.store(C, acc, coords=(0, 0))\n        lm.mma(acc, a, b)\n")),
    passing=TILE,
    sources=("HW041", "HW063",),
)

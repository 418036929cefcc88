"""S090: not decided."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S090",
    title="not decided",
    statement="What the safety gate cannot decide it says, with the operation or the expression that keeps it from deciding.",
    why="An open question is no pass: the verdict is `undecided`. Of a loop that no arguments tried make long, and of a ring whose slots none of them uses twice, it says which numbers of iterations were covered.",
    failing=edit(LOOP, ("    kt = lm.cdiv(K, 64)\n", "    kt = lm.max(K * K % 3, 1)\n")),
    passing=LOOP,
    severity="note",
)

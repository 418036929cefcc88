"""S090: not decided."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S090",
    title="not decided",
    statement="What the safety gate cannot decide it says, with the operation or the expression that keeps it from deciding.",
    why="An open question is no pass: the verdict is `undecided`.",
    failing=edit(LOOP, ("    kt = lm.cdiv(K, 64)\n", "    kt = lm.cdiv(K * K, 4096)\n")),
    passing=LOOP,
    severity="note",
)

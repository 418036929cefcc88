"""S001: a phase is left half given."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import PINGPONG

PAGE = Page(
    code="S001",
    title="a phase is left half given",
    statement="Every phase of a barrier that has been given an arrival gets all of them before the kernel ends.",
    why="A role that gives less often than its partners has lost a step: with one more iteration the next wait never returns.",
    failing=edit(PINGPONG, ("            lm.arrive(empty, stage=s)\n", "            if math.index == 0 or k + 2 < kt:\n                lm.arrive(empty, stage=s)\n")),
    passing=PINGPONG,
    limits="Seen where the run ends in this state; most such schedules hang before and are reported as S008.",
    sources=("HW053",),
)

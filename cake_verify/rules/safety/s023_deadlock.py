"""S023: members wait for each other."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S023",
    title="members wait for each other",
    statement="The wait-for relation over barriers, named barriers, turns and the cluster barrier has no circle.",
    why="The kernel hangs.",
    failing=edit(LOOP, ('cons=[load], arrive="warp", primed=True)', 'cons=[load], arrive="warp")')),
    passing=LOOP,
    sources=("HW104",),
)

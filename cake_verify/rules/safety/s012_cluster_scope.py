"""S012: slots that a peer writes are freed for this CTA only."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import MULTICAST, edit

PAGE = Page(
    code="S012",
    title="slots that a peer writes are freed for this CTA only",
    statement='A barrier that guards multicast loads has `scope="cluster"`: it counts the arrivals of every CTA that reads the slot.',
    why="A multicast load writes the slot in every CTA of its axis, whoever issues it; a peer that is slower still reads it.",
    failing=edit(MULTICAST, (', scope="cluster")', ")")),
    passing=MULTICAST,
    sources=("HW047", "HW094",),
)

"""S030: slices of one multicast come from different tiles."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import MULTICAST, edit

PAGE = Page(
    code="S030",
    title="slices of one multicast come from different tiles",
    statement="The CTAs that share a multicast load give the same coordinates.",
    why="Each brings one slice of the view to all: with different coordinates the view is stitched from several tiles.",
    failing=edit(MULTICAST, ("b.tma_load(B, coords=(k * 64, t.n * 128)", "b.tma_load(B, coords=(k * 64, t.m * 128)")),
    passing=MULTICAST,
    sources=("HW047",),
)

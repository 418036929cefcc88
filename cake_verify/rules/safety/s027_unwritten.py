"""S027: shared memory is read before anything has written it."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S027",
    title="shared memory is read before anything has written it",
    statement="Every byte of shared memory that is read has been written by this CTA or a peer before.",
    why="Shared memory starts with whatever the last kernel left.",
    failing=edit(LOOP, ("                b.tma_load(B, coords=(k * 64, t.n * 128), stage=s, barrier=full)\n", "")),
    passing=LOOP,
)

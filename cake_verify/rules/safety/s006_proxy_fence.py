"""S006: ordinary writes are not fenced for the async proxy."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S006",
    title="ordinary writes are not fenced for the async proxy",
    statement="Bytes written by ordinary stores or cp.async are fenced with `lm.fence_proxy()` by the threads that wrote them, after the write and before they meet the thread that issues a TMA store, an MMA on the view or a load over it.",
    why="A barrier orders execution; it does not carry ordinary writes over to the async proxy, which may read what was there before.",
    failing=edit(LOOP, ("            lm.fence_proxy()\n", "")),
    passing=LOOP,
    sources=("HW070",),
)

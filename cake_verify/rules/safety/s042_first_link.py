"""S042: the first link of a chain of tiles reads what nobody has written."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import TURNS

PAGE = Page(
    code="S042",
    title="read before any block has written it",
    statement="Where blocks hand a tensor on by flags, an operation that reads in some tiles what a block has written reads nothing in others that is only written later; and in a tile nothing behind it that nobody writes.",
    why="The first tile of a chain has nobody before it: what it reads is whatever the memory held, and it is added to everything that follows. What nobody writes, as where a loop over the parts stops one short, stays what the memory held.",
    failing=edit(TURNS, ("if t.p > 0:", "if t.p >= 0:")),
    passing=TURNS,
    limits="Looked at in launches with flags, for elements known as numbers. A tensor that does hold data when the launch starts says so: `.inout` where the launch replaces it, `.zeroed` where the launcher clears it.",
)

"""S029: a fragment is read before it has a value."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S029",
    title="a fragment is read before it has a value",
    statement="Every fragment that is read or accumulated into has a value on every path.",
    why="Registers start with whatever was in them.",
    failing=edit(LOOP, ("    lm.assume(K > 0)\n", "")),
    passing=LOOP,
)

"""S015: turns are not taken and passed on in order."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import PINGPONG

PAGE = Page(
    code="S015",
    title="turns are not taken and passed on in order",
    statement="Every member waits for its turn, passes it on, and all do so equally often.",
    why="A turn that is kept stops the other members; one passed on without being held lets two issue at once.",
    failing=edit(PINGPONG, ("            lm.arrive(turn)\n", "")),
    passing=PINGPONG,
)

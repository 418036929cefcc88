"""S040: two raise one flag without knowing of each other."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import ADDED

PAGE = Page(
    code="S040",
    title="a flag with two signallers",
    statement="Signals of one word of flags follow each other: who raises it again knows that it was raised before.",
    why="Who waits for the word passes at the first signal that is high enough, and cannot tell whose it was. What the other one was to announce need not have happened.",
    failing=edit(ADDED, ("lm.signal(DONE, t.g, 1)", "lm.signal(DONE, 0, 1)"), ("lm.spin(DONE, i, 1)", "lm.spin(DONE, 0, 1)")),
    passing=ADDED,
    limits="Members of a role execute a signal each: let one of them do it, or give each a word of its own.",
)

"""S013: a store runs past the end of its sequence."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import SEQUENCES

PAGE = Page(
    code="S013",
    title="a store runs past the end of its sequence",
    statement="Where offsets in memory divide the rows (`lm.ld(G, i)` and `lm.ld(G, i + 1)`), a store stays between them: it says `rows=`, or has a mask.",
    why="A tensor map clips at the end of the tensor, not of a sequence: the first rows of the next sequence would be spoilt.",
    failing=edit(SEQUENCES, (", rows=lm.min(64, eos - bos - i * 64))", ")")),
    passing=SEQUENCES,
    limits="That the offsets grow is an obligation of the launcher. Stores with a mask are taken to be right.",
)

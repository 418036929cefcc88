"""N023: an operator that does not apply."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N023",
    title="an operator that does not apply",
    statement="`/` and `**` are not for run-time integers, `and` and `or` combine truth values, `lm.assume` takes a condition.",
    why="Rounding must be visible: `//` rounds down, `lm.cdiv` rounds up.",
    failing=edit(LOOP, ("kt = lm.cdiv(K, 64)", "kt = K / 64")),
    passing=LOOP,
)

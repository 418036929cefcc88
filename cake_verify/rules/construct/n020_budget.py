"""N020: compile-time work beyond the budget."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N020",
    title="compile-time work beyond the budget",
    statement=(
        "Compile-time evaluation takes at most 200,000 steps, sequences have at most 4,096 items, `lm.static_range` unrolls at "
        "most 1,024 times, a schedule has at most 20,000 operations."
    ),
    why="A verdict must come within a second whatever a text says.",
    failing=edit(COPY, ("        x = lm.load", "        for i in lm.static_range(2000):\n            pass\n        x = lm.load")),
    passing=COPY,
)

"""N005: not part of the language."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N005",
    title="not part of the language",
    statement=(
        "Statements are assignments, `for` over `lm.range`, `lm.static_range` or `lm.tiles`, `if`, `with role:` and calls of "
        "the vocabulary; expressions are arithmetic, comparisons, tuples, slices and comprehensions over compile-time values."
    ),
    why="The gates decide about all runs of a schedule because its control flow is this small.",
    failing=edit(COPY, ("        x = lm.load", "        while True:\n            pass\n        x = lm.load")),
    passing=COPY,
)

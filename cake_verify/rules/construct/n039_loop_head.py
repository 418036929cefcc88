"""N039: a loop over something else."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N039",
    title="a loop over something else",
    statement="A loop runs over `lm.range`, `lm.static_range` or `lm.tiles`, and these stand only there.",
    why="Trip counts must be known or symbolic for the gates to decide about all of them.",
    failing=edit(COPY, ("        x = lm.load", "        for i in [1, 2]:\n            pass\n        x = lm.load")),
    passing=COPY,
)

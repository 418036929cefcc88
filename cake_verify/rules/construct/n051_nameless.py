"""N051: declared without a name."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N051",
    title="declared without a name",
    statement="A declared thing is bound to a plain name; `lm.launch` and `lm.assume` are not.",
    why="Without a name nothing can use it.",
    failing=edit(COPY, ("    with work", "    lm.pipeline(stages=2)\n    with work")),
    passing=COPY,
)

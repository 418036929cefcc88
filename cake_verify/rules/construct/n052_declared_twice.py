"""N052: a name is taken."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N052",
    title="a name is taken",
    statement="A declared name is bound once.",
    why="Diagnostics, generated code and the walk know a resource by its name.",
    failing=edit(TILE, ("ring = lm.pipeline(stages=1)", "ring = lm.pipeline(stages=1)\n    ring = lm.pipeline(stages=1)")),
    passing=TILE,
)

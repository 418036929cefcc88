"""N054: two launches."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N054",
    title="two launches",
    statement="`lm.launch` is stated at most once.",
    why="A schedule is one kernel.",
    failing=edit(LOOP, ("lm.assume(K > 0)", "lm.launch(grid=\"tiles\")\n    lm.assume(K > 0)")),
    passing=LOOP,
)

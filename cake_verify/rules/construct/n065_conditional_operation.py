"""N065: an operation inside a conditional expression."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N065",
    title="an operation inside a conditional expression",
    statement="Conditional expressions, `and` and `or` with a run-time condition hold no operation.",
    why="Operations are executed where they stand: the load would run whatever the condition says.",
    failing=edit(
        LOOP,
        ("            lm.store_wait(pending=0)\n            lm.sync(own)", "            y = c.ld(0) if t.m > 0 else 0.0\n            lm.store_wait(pending=0)\n            lm.sync(own)"),
    ),
    passing=LOOP,
)

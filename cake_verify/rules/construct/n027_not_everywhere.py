"""N027: not bound on every path."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N027",
    title="not bound on every path",
    statement="A name that is used after a branch or a loop is bound on every way there, to one type.",
    why="A register has a content on every path, or it must not be read.",
    failing=edit(
        LOOP,
        ("            lm.store_wait(pending=0)\n            lm.sync(own)\n            c.store(lm.cast(acc, lm.bf16))", "            if t.m == 0:\n                y = lm.cast(acc, lm.bf16)\n            lm.store_wait(pending=0)\n            lm.sync(own)\n            c.store(y)"),
    ),
    passing=LOOP,
)

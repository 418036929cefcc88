"""N064: a condition that differs between threads."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N064",
    title="a condition that differs between threads",
    statement="`if` takes a condition that is the same for all threads of the member.",
    why="Threads of a member stay together; they choose element by element with `lm.where`.",
    failing=edit(
        TILE,
        ("        lm.store(C, acc, coords=(0, 0))", "        if acc > 0.0:\n            lm.store(C, acc, coords=(0, 0))"),
    ),
    passing=TILE,
    sources=("HW074", "HW076"),
)

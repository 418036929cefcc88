"""D013: a name changes its type over a loop."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D013",
    title="a name changes its type over a loop",
    statement="A name that one iteration hands to the next has one type at the loop's head: form, shape, dtype, partial reduction.",
    why="A name is a place in registers; the next iteration reads what this one left there.",
    failing=edit(
        TILE,
        ("        lm.store(C, acc, coords=(0, 0))", "        y = lm.cast(acc, lm.bf16)\n        for i in lm.range(2):\n            y = lm.cast(y, lm.f32) * 2.0\n        lm.store(C, acc, coords=(0, 0))"),
    ),
    passing=TILE,
    limits="A finished row vector may become a partial minimum or maximum inside a loop, and the literal 0 a partial sum. A number that a loop rebinds becomes a value of run time in front of it.",
)

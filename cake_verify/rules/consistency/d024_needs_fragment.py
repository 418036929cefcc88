"""D024: a fragment is needed here."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D024",
    title="a fragment is needed here",
    statement="Elementwise operations, reductions and stores take fragments; running arguments take a (value, index) pair.",
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(
        TILE,
        ("        lm.store(C, acc, coords=(0, 0))", "        best = lm.argmax(acc, axis=1, into=acc)\n        lm.store(C, acc, coords=(0, 0))"),
    ),
    passing=TILE,
)

"""D007: an unfinished reduction."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D007",
    title="an unfinished reduction",
    statement=(
        "A partial reduction is combined only with operations that commute with it, and finished before it is stored, cast or "
        "reduced again."
    ),
    why="Each thread holds part of the result; a store would write one part of it.",
    failing=edit(
        TILE,
        ("        lm.store(C, acc, coords=(0, 0))", "        r = lm.reduce(acc, \"add\", axis=1, partial=True)\n        lm.store(C, r, coords=(0, 0))"),
    ),
    passing=edit(
        TILE,
        ("        lm.store(C, acc, coords=(0, 0))", "        r = lm.finish(lm.reduce(acc, \"add\", axis=1, partial=True))\n        lm.store(C, r, coords=(0, 0))"),
    ),
)

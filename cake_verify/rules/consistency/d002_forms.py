"""D002: register forms disagree."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D002",
    title="register forms disagree",
    statement=(
        "Fragments that meet in one operation have one form, chunk and warp split; an MMA takes `acc`, `a` and `b`; a cast "
        "changes the form only as the conversion table says."
    ),
    why="A form fixes which thread owns which element: adding two forms would add unrelated elements.",
    failing=edit(
        TILE,
        ("        lm.store(C, acc, coords=(0, 0))", "        x = lm.load(C, coords=(0, 0), shape=(64, 128), form=\"vec\")\n        lm.store(C, acc + x, coords=(0, 0))"),
    ),
    passing=TILE,
)

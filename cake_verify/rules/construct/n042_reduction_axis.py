"""N042: an axis is needed."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N042",
    title="an axis is needed",
    statement=(
        "A reduction of a matrix fragment names its axis: 1 leaves one value a row, 0 one a column; argmin and argmax run along "
        "the columns of a row."
    ),
    why="The two cost differently and mean different things.",
    failing=edit(TILE, ("        lm.store(C, acc,", "        r = lm.reduce(acc, \"max\")\n        lm.store(C, acc,")),
    passing=edit(TILE, ("        lm.store(C, acc,", "        r = lm.reduce(acc, \"max\", axis=1)\n        lm.store(C, acc,")),
)

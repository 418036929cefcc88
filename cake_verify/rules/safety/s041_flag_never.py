"""S041: a wait for a flag that nobody raises."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import CHAIN

PAGE = Page(
    code="S041",
    title="a flag that nobody raises",
    statement="Every `lm.spin` ends: some block signals its word as high, or enough of them count it up, and does not itself wait for what comes after, in a grid of any size.",
    why="The launch hangs. A persistent grid may be as small as the device makes it: a block has several tiles then, and one that waits for a later tile of its own never reaches it.",
    failing=edit(CHAIN, ("if t.g > 0:", "if t.g + 1 < G:"), ("lm.spin(FLAGS, t.g - 1, 1)", "lm.spin(FLAGS, t.g + 1, 1)"), ("coords=(0, t.g - 1)", "coords=(0, t.g + 1)")),
    passing=CHAIN,
    limits="Grids of one cluster, of two and of one a tile are walked; where the number of tiles is bounded by 48, the SMs of the smallest device of the tables, one a tile. A word that `lm.atomic` raises by numbers of the text, all by `add` or all by `max`, is counted; where the amount, the place or the order is open, the verdict is undecided (S090). "
    "A count says nothing of what the counting blocks have written.",
)

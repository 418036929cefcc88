"""N029: no such attribute."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N029",
    title="no such attribute",
    statement=(
        "Tiles have the fields that their scheduler names, slots have `.index`, roles have `.index` inside their block, views "
        "and tensors have `.T` and `.extent(..)`."
    ),
    why="Attributes are how uniform values of the launch are read.",
    failing=edit(LOOP, ("t.n * 128, t.m * 64))\n        lm.store_wait", "t.n * 128, t.k * 64))\n        lm.store_wait")),
    passing=LOOP,
)

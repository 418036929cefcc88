"""S034: a value is not the one that is meant."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import NAMED

OF_VALUES = True

PAGE = Page(
    code="S034",
    title="another tile than the one that is meant",
    statement="Both operands of a product cover the same stretch of the axis that is summed, all products of an accumulator belong to one tile, "
    "a store writes the place that its values were loaded for, a mask by positions counts them from where the rows and columns of its tile start, and a running minimum numbers the columns of each tile.",
    why="Everything is synchronised and the result is wrong: a coordinate, a slot or a part of a tile belongs to another iteration, tile or member.",
    failing=edit(NAMED, ("b.tma_load(B, coords=(k * 64, t.n * 128)", "b.tma_load(B, coords=((k + 1) * 64, t.n * 128)")),
    passing=NAMED,
    limits="Axes are compared by the names that tensor parameters declare (`LM.tma2d[LM.bf16, \"M\", \"K\"]`); nothing is said of axes without a name, of coordinates read from "
    "a table, and of elementwise results whose inputs come from different places. A value into which no product went may be moved on purpose: its store is a warning. An output "
    "that rearranges an axis names it differently.",
)

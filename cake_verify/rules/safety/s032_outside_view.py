"""S032: part of a view lies outside it."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import PINGPONG

PAGE = Page(
    code="S032",
    title="part of a view lies outside it",
    statement="Rows and columns that are taken from a view, and columns of a region of tensor memory, lie inside it for every member, slot and iteration.",
    why="The access would touch a neighbour's bytes or columns.",
    failing=edit(PINGPONG, ("64 * math.index, 64), b[s]", "8 * (k * k % 16), 64), b[s]")),
    passing=PINGPONG,
)

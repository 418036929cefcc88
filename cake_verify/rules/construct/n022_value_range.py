"""N022: a value out of range."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N022",
    title="a value out of range",
    statement="Compile-time arithmetic stays within 64 bits, does not divide by zero, and its operands fit the operation.",
    why="Tile sizes and offsets are small numbers; a large one is a slip.",
    failing=edit(COPY, ("shape=(512,)", "shape=(512 // 0,)")),
    passing=COPY,
)

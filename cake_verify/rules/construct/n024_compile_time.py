"""N024: must be known at compile time."""

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="N024",
    title="must be known at compile time",
    statement=(
        "Shapes, offsets, stages, slices' extents, loop bounds of `lm.static_range` and everything that declares a resource are "
        "compile-time values; counts are integers."
    ),
    why="They fix the layout of shared memory and the instructions that are printed.",
    failing=edit(LOOP, ("lm.smem(65536)", "lm.smem(K)")),
    passing=LOOP,
)

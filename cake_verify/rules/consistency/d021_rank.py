"""D021: one dimension too few, or too many."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="D021",
    title="a wrong number of dimensions",
    statement="MMA operands and `.T` are for two-dimensional views and fragments; a one-dimensional view is sliced with `.cols`. `lm.ld` reads one-dimensional tensors.",
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(TILE, ("shape=(128, 64), dtype=lm.bf16, swizzle=\"128b\"", "shape=(8192,), dtype=lm.bf16")),
    passing=TILE,
)

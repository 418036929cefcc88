"""N017: not a parameter type."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N017",
    title="not a parameter type",
    statement="A run-time parameter is `LM.tma1d` to `LM.tma5d`, `LM.gmem1d` to `LM.gmem4d`, or a scalar such as `LM.i32`.",
    why="The type says how the argument reaches the kernel: as a tensor map, as a pointer with strides, or by value.",
    failing=edit(COPY, ("X: LM.gmem1d", "X: LM.gmem9d")),
    passing=COPY,
)

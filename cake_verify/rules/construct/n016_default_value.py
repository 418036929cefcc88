"""N016: not a compile-time value."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N016",
    title="not a compile-time value",
    statement="The default of a tunable, and the target, is a number of at most 64 bits, a string, None, a dtype, or a tuple of those.",
    why="Compile-time values are part of a program's identity.",
    failing=edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], *, N=2 ** 9")),
    passing=edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], *, N=512"), ("shape=(512,)", "shape=(N,)")),
)

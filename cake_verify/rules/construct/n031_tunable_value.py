"""N031: a tunable of another kind."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N031",
    title="a tunable of another kind",
    statement="The value given for a tunable is of the kind of its default.",
    why="A tile size of 2.5 or of \"64\" has no meaning.",
    failing=edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], *, N=512"), ("shape=(512,)", "shape=(N,)")),
    passing=edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], *, N=512"), ("shape=(512,)", "shape=(N,)")),
    params=(("N", 2.5),),
)

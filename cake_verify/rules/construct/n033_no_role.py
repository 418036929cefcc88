"""N033: no role."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY

PAGE = Page(
    code="N033",
    title="no role",
    statement="A schedule declares at least one role.",
    why="Operations run on the warps of a role.",
    failing='@cake.schedule(target="sm_90a")\ndef copy(lm, X: LM.gmem1d[LM.f32]):\n    pass\n',
    passing=COPY,
)

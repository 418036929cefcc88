"""N010: two plans."""

from cake_verify.rule import Page
from cake_verify.rules.examples import PLAN, edit

PAGE = Page(
    code="N010",
    title="two plans",
    statement="A file has at most one plan.",
    why="The plan says which launches make up the candidate, in order.",
    failing=edit(
        PLAN,
        ("@cake.plan()\ndef twice", "@cake.plan()\ndef once(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):\n    lm.run(copy, X=X, Y=Y)\n\n\n@cake.plan()\ndef twice"),
    ),
    passing=PLAN,
)

"""N011: a schedule is defined twice."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N011",
    title="a schedule is defined twice",
    statement="Schedules of a file have different names.",
    why="A plan runs them by name.",
    failing=edit(
        COPY,
        ("@cake.schedule", "@cake.schedule(target=\"sm_90a\")\ndef copy(lm, X: LM.gmem1d[LM.f32]):\n    work = lm.role(warps=[0])\n    with work:\n        pass\n\n\n@cake.schedule"),
    ),
    passing=COPY,
)

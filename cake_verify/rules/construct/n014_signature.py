"""N014: the parameters of a schedule."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N014",
    title="the parameters of a schedule",
    statement=(
        "The first parameter is the receiver, called `lm`; then run-time arguments with their types and no defaults; then, "
        "after `*`, compile-time tunables."
    ),
    why="Run-time arguments are bound by the launcher by name; tunables are what a search varies.",
    failing=edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32] = None")),
    passing=COPY,
)

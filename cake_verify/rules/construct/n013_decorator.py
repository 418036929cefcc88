"""N013: not a schedule."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N013",
    title="not a schedule",
    statement="A function of the file is decorated by `@cake.schedule(target=..)` or `@cake.plan()`, with keywords only.",
    why="The decorator says what the function is and which architectures it is for.",
    failing=edit(COPY, ("@cake.schedule(target=\"sm_90a\")\n", "")),
    passing=COPY,
)

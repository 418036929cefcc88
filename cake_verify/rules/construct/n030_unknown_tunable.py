"""N030: no such tunable."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY

PAGE = Page(
    code="N030",
    title="no such tunable",
    statement="Parameters given with a request are tunables that some schedule of the text declares after `*`.",
    why="A variant that changes nothing would be judged as if it were new.",
    failing=COPY,
    passing=COPY,
    params=(("TILE", 64),),
)

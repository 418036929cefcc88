"""N999: Cake itself failed."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY

PAGE = Page(
    code="N999",
    title="Cake itself failed",
    statement="A failure of Cake is reported as one line with the place in Cake's source; nothing about the schedule is proved or refused.",
    why="A verdict of `undecided` is honest where the tool broke. Please report it with the text.",
    failing=COPY,
    passing=COPY,
    limits="There is no text that is known to cause it, or it would be mended; the example is a good one.",
    severity="warning",
)

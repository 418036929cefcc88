"""N066: no schedule of that name."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY

PAGE = Page(
    code="N066",
    title="no schedule of that name",
    statement="A request that names a schedule names one of the text.",
    why="The others would be verified in its place without anybody noticing.",
    failing=COPY,
    passing=COPY,
    limits="The name comes with the request, not from the text; the example is a good one.",
)

"""N004: no schedule."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY

PAGE = Page(
    code="N004",
    title="no schedule",
    statement="A file holds at least one `@cake.schedule` function.",
    why="There is nothing to verify.",
    failing='# nothing here\n',
    passing=COPY,
)

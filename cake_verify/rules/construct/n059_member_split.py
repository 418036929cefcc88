"""N059: members do not divide the warps."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N059",
    title="members do not divide the warps",
    statement="The warps of a role split evenly over its members.",
    why="Members execute one program on equal parts.",
    failing=edit(COPY, ("range(0, 4))", "range(0, 4), members=3)")),
    passing=COPY,
)

"""N058: warps that are not consecutive."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N058",
    title="warps that are not consecutive",
    statement="A role's warps are consecutive numbers from 0 to 31.",
    why="A role is found by comparing the warp's number with two bounds.",
    failing=edit(COPY, ("range(0, 4)", "[0, 2]")),
    passing=COPY,
)

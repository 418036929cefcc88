"""N069: a number that starts anew with every tile and that nothing changes."""

from cake_verify.rule import Page
from cake_verify.rules.examples import FLAG, edit

PAGE = Page(
    code="N069",
    title="a number that nothing changes",
    statement="A number that every tile starts from a literal, in front of a loop, and that a branch in or behind the loop asks about, or that is a zero to which something is added there, is changed by the loop.",
    why="Nobody starts a constant anew with every tile: it is a flag that was to be cleared, or a running sum. Without the assignment a search goes on behind its end, and a sum is nothing.",
    failing=edit(FLAG, ("                        looking = 0\n", "")),
    passing=FLAG,
    limits="Names that their role's block binds once, to a number, in a loop over tiles and in front of a counted loop. Numbers bound outside of loops over tiles, tunables and other uses of a number may be meant.",
)

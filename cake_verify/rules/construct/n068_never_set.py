"""N068: a flag that is set where its own condition keeps every round out."""

from cake_verify.rule import Page
from cake_verify.rules.examples import FLAG, edit

PAGE = Page(
    code="N068",
    title="an arm that would have to run first",
    statement="A number that a loop carries is not changed only in an arm whose condition is false for the number that it starts with.",
    why="No round ever takes such an arm, so the number stays what it was and all that stands there is never done.",
    failing=edit(FLAG, ("looking > 0", "looking > 1")),
    passing=FLAG,
    limits="Names bound in front of the loop to a number that is known when the schedule is read. A branch on such a number outside of a loop is a choice that the author made, as is one on a tunable that the arm leaves alone.",
)

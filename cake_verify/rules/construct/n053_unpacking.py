"""N053: names and values do not match."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N053",
    title="names and values do not match",
    statement="As many names as values stand on the two sides of an assignment, and as many axis names as axes.",
    why="The text cannot mean what it says otherwise, and a guess would be wrong silently.",
    failing=edit(
        COPY,
        ("        x = lm.load(X, coords=(0,), shape=(512,))", "        x, y = lm.load(X, coords=(0,), shape=(512,))"),
    ),
    passing=COPY,
)

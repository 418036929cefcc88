"""N001: not Python syntax."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N001",
    title="not Python syntax",
    statement="A text is parsed as Python before anything else is looked at.",
    why="Nothing can be said of a text that does not parse. Cake reads it with Python's own parser and never executes it.",
    failing=edit(COPY, ("coords=(0,), shape=(512,))", "coords=(0,), shape=(512,)")),
    passing=COPY,
)

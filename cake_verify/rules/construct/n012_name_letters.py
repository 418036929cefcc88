"""N012: a name with other letters."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N012",
    title="a name with other letters",
    statement="Names are ASCII letters, digits and underscores, at most 64 of them, and do not start with a digit.",
    why="Names appear in generated code, in messages and in file names.",
    failing=edit(COPY, ("work = lm.role", "wörk = lm.role"), ("with work", "with wörk")),
    passing=COPY,
)

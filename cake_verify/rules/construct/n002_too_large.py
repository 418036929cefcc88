"""N002: too large or too deeply nested."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N002",
    title="too large or too deeply nested",
    statement="A text has at most 262,144 bytes and 8,000 lines, brackets and blocks nest at most 60 deep, loops at most 16.",
    why="A schedule is a few hundred lines. The limits keep every answer within a second, whatever a text holds.",
    failing=edit(
        COPY,
        ("shape=(512,)", "shape=(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((512,)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))"),
    ),
    passing=COPY,
)

"""N006: a call of something else."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N006",
    title="a call of something else",
    statement=(
        "Only operations of the language, methods of views and slots, and `min max sum len abs range` on compile-time values "
        "are called."
    ),
    why="There is no way out of the language: no Python, no CUDA, no PTX.",
    failing=edit(
        COPY,
        ("        x = lm.load(X, coords=(0,), shape=(512,))", "        print(1)\n        x = lm.load(X, coords=(0,), shape=(512,))"),
    ),
    passing=COPY,
)

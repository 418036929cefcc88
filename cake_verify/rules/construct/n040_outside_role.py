"""N040: outside a role."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N040",
    title="outside a role",
    statement="Operations and ring positions stand inside `with role:`.",
    why="Each is executed by the warps of one role.",
    failing=edit(
        COPY,
        ("    with work:\n        x = lm.load(X, coords=(0,), shape=(512,))", "    x = lm.load(X, coords=(0,), shape=(512,))\n    with work:"),
    ),
    passing=COPY,
)

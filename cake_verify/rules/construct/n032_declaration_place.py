"""N032: a declaration in the wrong place."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N032",
    title="a declaration in the wrong place",
    statement=(
        "Everything that a kernel allocates is declared on lines of its own before the first `with role:` block; a plan holds "
        "workspaces, clears, runs and host arithmetic."
    ),
    why="The declaration block is the kernel's bill of resources.",
    failing=edit(
        COPY,
        ("        x = lm.load(X, coords=(0,), shape=(512,))", "        x = lm.load(X, coords=(0,), shape=(512,))\n        more = lm.role(warps=range(4, 8))"),
    ),
    passing=COPY,
)

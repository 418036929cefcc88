"""N003: a statement at the top of the file."""

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="N003",
    title="a statement at the top of the file",
    statement=(
        "A file holds `@cake.schedule` functions, at most one `@cake.plan`, a docstring, and the imports `import cake` and "
        "`from cake import LM, lm`, which do nothing."
    ),
    why="Nothing is executed, so that a statement outside a schedule could have no effect.",
    failing=edit(COPY, ("@cake.schedule", "import os\n\n@cake.schedule")),
    passing=COPY,
)

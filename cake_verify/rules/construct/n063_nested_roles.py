"""N063: role blocks nest."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N063",
    title="role blocks nest",
    statement="A `with role:` block stands at the top of the schedule.",
    why="Roles run side by side from start to end.",
    failing=edit(
        TILE,
        ("        lm.store(C, acc, coords=(0, 0))", "        with load:\n            pass\n        lm.store(C, acc, coords=(0, 0))"),
    ),
    passing=TILE,
)

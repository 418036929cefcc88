"""N035: another role's index."""

from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="N035",
    title="another role's index",
    statement="`role.index` has a value inside `with role:` only.",
    why="It is the number of the member that executes the line.",
    failing=edit(
        TILE,
        ("math = lm.role(warps=range(0, 4))", "math = lm.role(warps=range(0, 8), members=2)"),
        ("load = lm.role(warps=range(4, 8))", "load = lm.role(warps=range(8, 12))"),
        ("coords=(0, 0), stage=s, barrier=full)\n        b", "coords=(0, math.index), stage=s, barrier=full)\n        b"),
    ),
    passing=TILE,
)

"""S036: a result is computed and never used."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.dead_values import unused_results
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

OF_VALUES = True

PAGE = Page(
    code="S036",
    title="a result that is never used",
    statement="What a product of matrices or a load brings into registers reaches memory, a barrier's condition or a uniform value; a mask that has a name selects something.",
    why="Work whose result nobody reads means that a store is missing.",
    failing=edit(TILE, ("        lm.store(C, acc, coords=(0, 0))\n", "")),
    passing=TILE,
    limits="Decided for names over the whole of a role. Elementwise results that are not used are left alone unless a tensor parameter is unused as well.",
)


def check(program: Program) -> Iterator[Fault]:
    yield from unused_results(program)

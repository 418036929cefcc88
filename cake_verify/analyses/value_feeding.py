"""Which places of a role what is asked of others can come from: only those are worth following."""

from __future__ import annotations

from collections.abc import Iterable

from cake_ir.program import Assign
from cake_verify.analyses.fragment_paths import Leaf
from cake_verify.analyses.plan import Plan

Place = tuple[str, str]
"""A role and a name in it."""

Selection = tuple[list[Leaf], int, int]
"""The places that a maximum or minimum along columns runs over, and how many rows and columns it has."""


def sources_of(plan: Plan) -> dict[Place, set[str]]:
    """By place the names that the computations which bind it read."""
    found: dict[Place, set[str]] = {}
    for s in plan.sites.values():
        targets = s.stmt.targets if isinstance(s.stmt, Assign) else ()
        for tree in plan.code.ops[s.op.id].trees.values() if targets else ():
            read = [leaf.name for leaf in plan.paths(tree).leaves]
            for name in targets:
                found.setdefault((s.role, name), set()).update(read)
    return found


def feeding(sources: dict[Place, set[str]], wanted: Iterable[Place]) -> frozenset[Place]:
    """`wanted`, and every place whose contents may come to be in one of them."""
    found = set(wanted)
    left = list(found)
    while left:
        role, name = left.pop()
        for source in sources.get((role, name), ()):
            if (role, source) not in found:
                found.add((role, source))
                left.append((role, source))
    return frozenset(found)


__all__ = ["Place", "Selection", "feeding", "sources_of"]

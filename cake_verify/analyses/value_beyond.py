"""Rows of the next sequence that are added up with those of this one.

Offsets in memory divide an axis, a tile starts at one of them, and the last tile of a sequence holds rows of the next one. A row behind the
end of the sequence that its tile started in goes into no running sum, maximum or minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cake_ir.program import Expr, Op
from cake_ir.types import ViewT
from cake_verify.analyses.labels import moved
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_ends import divided_by, end_of

if TYPE_CHECKING:
    from cake_verify.analyses.value_walk import ValueWalk

_GATHER = frozenset({"add", "sub", "max", "min", "fma"})
_MASKS = frozenset({"where", "select", "in_bounds"})


def beyond(walk: ValueWalk, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
    """What keeps where a tile's row came from, and the check of what running values take in."""
    if not targets:
        return None
    view = op.operands.get("view")
    if op.name in ("load", "ldmatrix") and isinstance(view, Expr) and isinstance(view.type, ViewT) and not view.type.transposed:
        return _loaded(walk, op, view.type, targets)
    tree = walk.plan.code.ops[op.id].trees.get("value") if op.name == "compute" else None
    if tree is None:
        return None
    names = list(dict.fromkeys(leaf.name for leaf in walk.plan.paths(tree).leaves))
    masked = any(n.op in _MASKS for n in tree.parts())
    gathers = not masked and tree.op in _GATHER and bool(set(targets) & set(names))

    def step(m: Member, v: tuple[Any, ...]) -> None:
        found = [walk.rows_of[m.number, n] for n in names if (m.number, n) in walk.rows_of]
        if gathers:
            for row, start in found:
                end = end_of(walk, m, start) if divided_by(walk, start) else None
                if row and end is not None and row[1] >= end:
                    walk.behind(op, m, v, row)
        for name in targets:
            if len(found) == 1 and not masked and not gathers:
                walk.rows_of[m.number, name] = found[0]
            else:
                walk.rows_of.pop((m.number, name), None)

    return step


def _loaded(walk: ValueWalk, op: Op, t: ViewT, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None]:
    atoms, at = walk.plan.lookup(op, "view"), walk.plan.code.ops[op.id].index["view"]

    def step(m: Member, v: tuple[Any, ...]) -> None:
        start = walk.origin(m, atoms[v[at]][0], t.view)
        for name in targets:
            if start and start[0]:
                walk.rows_of[m.number, name] = (moved(start, v[at][1]), start)
            else:
                walk.rows_of.pop((m.number, name), None)

    return step


__all__ = ["beyond"]

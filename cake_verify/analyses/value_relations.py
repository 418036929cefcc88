"""Masks that compare the positions of rows and columns, as a causal mask does, against where the rows and columns of a tile start.

Where both run along one axis of the tensors, `lm.iota(x, axis=1, base=b) <= lm.iota(x, axis=0, base=a)` means the elements' own numbers only
if b - a is the distance of the two starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cake_ir.program import Expr, Op
from cake_verify.analyses.fragment_paths import offset
from cake_verify.analyses.labels import moved
from cake_verify.analyses.state import Member

if TYPE_CHECKING:
    from cake_verify.analyses.value_walk import ValueWalk

Distances = Callable[[Member, tuple[Any, ...]], tuple[int, ...]]


def _distances(walk: ValueWalk, e: Expr) -> Distances | None:
    """How far the bases of columns lie beyond those of rows, for every comparison of the two in a mask."""
    if e.op == "var":
        name = str(e.attrs["name"])
        return lambda m, v: walk.relations.get((m.number, name), ())
    if e.op in ("and", "bitand"):
        parts = [d for a in e.args if (d := _distances(walk, a)) is not None]
        return (lambda m, v: tuple(x for d in parts for x in d(m, v))) if parts else None
    if e.op not in ("lt", "le", "gt", "ge") or len(e.args) != 2:
        return None
    one, other = (walk.bounds.position(a) for a in e.args)
    if one is None or other is None:
        return None

    def between(m: Member, v: tuple[Any, ...]) -> tuple[int, ...]:
        a, b = one(m, v), other(m, v)
        if a is None or b is None or {a[0], b[0]} != {0, 1}:
            return ()
        return (a[1] - b[1] if a[0] == 1 else b[1] - a[1],)

    return between


def relations(walk: ValueWalk, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
    """What keeps the comparisons of a mask that is bound to a name, and the check of masks where they are used."""
    tree = walk.plan.code.ops[op.id].trees.get("value") if op.name == "compute" else None
    if tree is None:
        return None
    bound = _distances(walk, tree) if len(targets) == 1 else None
    uses = [(d, walk.plan.paths(n.args[1]).leaves) for n in tree.walk() if n.op == "where" and (d := _distances(walk, n.args[0])) is not None]
    if bound is None and not uses:
        return None

    def step(m: Member, v: tuple[Any, ...]) -> None:
        if bound is not None:
            walk.relations[m.number, targets[0]] = bound(m, v)
        for distances, leaves in uses:
            found = distances(m, v)
            for leaf in leaves if found else ():
                if (leaf.row, leaf.col) != (0, 1):
                    continue
                row, col = walk.held(m, leaf, v)[:2]
                row, col = moved(row, offset(leaf.row_from, v)), moved(col, offset(leaf.col_from, v))
                if row and col and row[0] == col[0] and any(d != col[1] - row[1] for d in found):
                    walk.related(op, m, v, row, col)

    return step

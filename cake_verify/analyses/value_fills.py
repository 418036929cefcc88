"""Zeros that a copy filled in beyond a tensor's end, on their way into a selection for which zero is not neutral.

A place is `kept` clean once a mask by position, or an absolute value, went into it. A maximum or minimum along columns that run past the
end of their axis, in a place that is not, takes the zeros for elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cake_ir.derive.structure import nodes
from cake_ir.fact import fact
from cake_ir.program import Expr, Op, Program
from cake_ir.types import FragT
from cake_verify.analyses.fragment_paths import Leaf, offset
from cake_verify.analyses.labels import moved
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_ends import end_of
from cake_verify.analyses.value_feeding import Place, Selection, feeding
from cake_verify.analyses.value_relations import far, unmasked

if TYPE_CHECKING:
    from cake_verify.analyses.plan import Plan
    from cake_verify.analyses.value_walk import ValueWalk

_MASKS = frozenset({"where", "select", "abs", "in_bounds"})
_SELECTIONS = frozenset({"reduce", "argmin", "argmax", "topk"})


def fills(walk: ValueWalk, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
    """What an operation does to clean places, and the check of the selections in it; None where neither matters."""
    taken, role = _taken(walk), walk.plan.sites[op.id].role
    if op.name == "mma":
        acc = op.operands["acc"]
        names = [str(n.attrs["name"]) for n in acc.parts() if n.op == "var"] if isinstance(acc, Expr) else []
        names = [n for n in names if (role, n) in taken]

        def fresh(m: Member, v: tuple[Any, ...]) -> None:
            for name in names:
                walk.kept.discard((m.number, name))

        return fresh if names else None
    tree = walk.plan.code.ops[op.id].trees.get("value") if op.name == "compute" else None
    if tree is None and not targets:
        return None
    checks = walk.selections.get(op.id, [])
    asked = [n for n in targets if (role, n) in taken]
    if not asked and not checks:
        return None
    cleans = op.operands.get("mask") is not None or bool(op.attrs.get("fill")) or (tree is not None and not _MASKS.isdisjoint([n.op for n in tree.parts()]))
    read = [leaf.name for leaf in walk.plan.paths(tree).leaves] if tree is not None else []

    def step(m: Member, v: tuple[Any, ...]) -> None:
        for over, rows, columns in checks:
            _check(walk, op, m, v, over, rows, columns)
        kept, number = walk.kept, m.number
        if not kept and not cleans:
            return
        clean = cleans or any([(number, name) in kept for name in read])
        change = kept.add if clean else kept.discard
        for name in asked:
            change((number, name))

    return step


@fact
def selects(program: Program) -> bool:
    """Whether some computation of a program takes a maximum or minimum: clean places are of no use to anything else."""
    found = nodes(program)
    return any(_selects_at(n) for op in program.ops if op.name == "compute" for n in found[op.id] if n.op in _SELECTIONS)


def _selects_at(n: Expr) -> bool:
    """Whether a node takes the largest or least along columns."""
    return (n.op != "reduce" or n.attrs.get("op") in ("max", "min")) and n.attrs.get("axis", 1) == 1


def _taken(walk: ValueWalk) -> frozenset[Place]:
    """The places that a selection takes from, and those that are on the way to one; the selections themselves are kept by operation."""
    if walk.taken is None:
        plan, inside = walk.plan, nodes(walk.plan.program)
        for s in plan.sites.values():
            selects = s.op.name == "compute" and not _SELECTIONS.isdisjoint([n.op for n in inside[s.op.id]])
            tree = plan.code.ops[s.op.id].trees.get("value") if selects else None
            found = [c for n in tree.parts() if n.op in _SELECTIONS and (c := _selection(plan, n)) is not None] if tree is not None else []
            if found:
                walk.selections[s.op.id] = found
        over = [(plan.sites[number].role, leaf.name) for number, found in walk.selections.items() for leaves, _, _ in found for leaf in leaves]
        walk.taken = feeding(walk.sources, over)
    return walk.taken


def _selection(plan: Plan, n: Expr) -> Selection | None:
    """A maximum or minimum along columns; None for anything else."""
    if not _selects_at(n):
        return None
    t = n.args[0].type
    if not isinstance(t, FragT) or t.rank < 2 or any(x.op in _MASKS for x in n.args[0].parts()):
        return None
    return plan.paths(n.args[0]).leaves, t.rows, t.cols


def _check(walk: ValueWalk, op: Op, m: Member, v: tuple[Any, ...], leaves: list[Leaf], rows: int, columns: int) -> None:
    masked = any((m.number, leaf.name) in walk.kept for leaf in leaves)
    for leaf in leaves:
        tile = walk.held(m, leaf, v)
        label = moved(tile[1], offset(leaf.col_from, v)) if leaf.col == 1 else ()
        if not label:
            continue
        end = end_of(walk, m, label)
        if not masked and end is not None and end < label[1] + columns:
            walk.filled(op, m, v, label)
        row = moved(tile[0], offset(leaf.row_from, v)) if leaf.row == 0 else ()
        if row and row[0] == label[0] and tile[2] and end is not None and (last := end_of(walk, m, row)) is not None:
            if masked:
                far(walk, m, row, rows, label, columns)
            else:
                unmasked(walk, op, m, v, row, label, rows, (last, min(label[1] + columns, end)))


__all__ = ["fills", "selects"]

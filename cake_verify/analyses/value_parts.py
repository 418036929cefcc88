"""Sums, maxima and minima along an axis that leave a part of it out.

Every place carries the stretches of the axis that were loaded into it or combined with what was. What one kind of reduction of a role has
seen of a tensor's axis at the end of a run is all of it, where nothing but the axis's length decides what is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cake_ir.derive.mentions import mentions
from cake_ir.fact import fact
from cake_ir.program import Expr, Op, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import sites
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_feeding import Place, feeding

if TYPE_CHECKING:
    from cake_verify.analyses.value_walk import ValueWalk

Part = tuple[str, int, int, int]
"""An axis, where on it, how many elements, and the operation that brought them."""

Seen = dict[tuple[str, str, str, str], set[Part]]
"""What the reductions of a role have seen: by role, kind, axis and tensor."""

MOST = 256
_FROM_MEMORY = ("load", "ldmatrix")
_NONE: frozenset[Part] = frozenset()


@fact
def reduces(program: Program) -> bool:
    """Whether anything is summed, or its largest or least taken, along columns."""
    said = mentions(program)
    return ("reduce" in said or "sum" in said or "reduce_across" in sites(program).named) and any(_kinds(s.op) for s in sites(program).of("compute", "reduce_across"))


def _kinds(op: Op) -> list[tuple[str, Expr]]:
    """The reductions along columns in an operation: their kind and what they run over."""
    if op.name == "reduce_across":
        x = op.operands.get("x")
        return [(str(op.attrs.get("op")), x)] if isinstance(x, Expr) and op.attrs.get("axis") in (None, 1) else []
    value = op.operands.get("value")
    nodes = value.parts() if op.name == "compute" and isinstance(value, Expr) else ()
    return [(str(n.attrs.get("op", "add")), n.args[0]) for n in nodes if n.op in ("reduce", "sum") and n.attrs.get("axis", 1) in (None, 1)]


def collected(walk: ValueWalk, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
    """What keeps the stretches that went into the places which an operation binds, and what its reductions have seen."""
    plan = walk.plan
    role = plan.sites[op.id].role
    if walk.summed is None:
        walk.summed = _summed(walk)
    asked = [n for n in targets if (role, n) in walk.summed]
    if op.name in _FROM_MEMORY and isinstance(op.type, FragT):
        columns = op.type.cols

        def loaded(m: Member, v: tuple[Any, ...]) -> None:
            for name in asked:
                label = walk.labels_of(m, name)[1]
                walk.parts[m.number, name] = frozenset(((label[0], label[1], columns, label[2]),)) if label and label[0] else _NONE

        return loaded if asked else None
    trees = plan.code.ops[op.id].trees
    tree = trees.get("value") if op.name == "compute" else trees.get("x") if op.name == "reduce_across" else None
    if tree is None:
        return None
    names = list(dict.fromkeys(leaf.name for leaf in plan.paths(tree).leaves))
    over = [(kind, list(dict.fromkeys(leaf.name for leaf in plan.paths(n).leaves))) for kind, n in _kinds_of_tree(op, tree)]
    if not asked and not over:
        return None

    def combined(m: Member, v: tuple[Any, ...]) -> None:
        parts, number = walk.parts, m.number
        if not parts:
            return
        for kind, sources in over:
            for name in sources:
                for part in parts.get((number, name), _NONE):
                    tensor = str(plan.program.ops[part[3]].attrs.get("tensor"))
                    walk.reduced.setdefault((role, kind, part[0], tensor), set()).add(part)
        found = _NONE
        for name in () if over else names:
            more = parts.get((number, name))
            if more:
                found = found | more if found else more
        for name in asked:
            if found and len(found) <= MOST:
                parts[number, name] = found
            else:
                parts.pop((number, name), None)

    return combined


def _summed(walk: ValueWalk) -> frozenset[Place]:
    """The places that a reduction takes in, and those that are on the way to one."""
    plan = walk.plan
    wanted: list[Place] = []
    for s in plan.sites.values():
        tree = plan.code.ops[s.op.id].trees.get("value" if s.op.name == "compute" else "x") if s.op.name in ("compute", "reduce_across") else None
        if tree is not None:
            wanted += [(s.role, leaf.name) for _, n in _kinds_of_tree(s.op, tree) for leaf in plan.paths(n).leaves]
    return feeding(walk.sources, wanted)


def _kinds_of_tree(op: Op, tree: Expr) -> list[tuple[str, Expr]]:
    if op.name == "reduce_across":
        return [(kind, tree) for kind, _ in _kinds(op)]
    return [(str(n.attrs.get("op", "add")), n.args[0]) for n in tree.parts() if n.op in ("reduce", "sum") and n.attrs.get("axis", 1) in (None, 1)]


__all__ = ["Part", "Seen", "collected", "reduces"]

"""Zeros that a copy filled in beyond a tensor's end, on their way into a selection for which zero is not neutral.

A place is `kept` clean once a mask by position, or an absolute value, went into it. A maximum or minimum along columns that run past the
end of their axis, in a place that is not, takes the zeros for elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cake_ir.program import Expr, Op
from cake_ir.types import FragT
from cake_verify.analyses import trips
from cake_verify.analyses.fragment_paths import Leaf, offset
from cake_verify.analyses.labels import moved
from cake_verify.analyses.state import Member

if TYPE_CHECKING:
    from cake_verify.analyses.plan import Plan
    from cake_verify.analyses.value_walk import ValueWalk

FILLING = ("tma_load", "cp_async")
"""Copies that fill what lies beyond the tensor with zeros."""

_MASKS = frozenset({"where", "select", "abs", "in_bounds"})


def fills(walk: ValueWalk, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
    """What an operation does to clean places, and the check of the selections in it; None where neither matters."""
    if op.name == "mma":
        acc = op.operands["acc"]
        names = [str(n.attrs["name"]) for n in acc.walk() if n.op == "var"] if isinstance(acc, Expr) else []

        def fresh(m: Member, v: tuple[Any, ...]) -> None:
            for name in names:
                walk.kept.discard((m.number, name))

        return fresh if names else None
    tree = walk.plan.code.ops[op.id].trees.get("value") if op.name == "compute" else None
    if tree is None and not targets:
        return None
    inside = tree.walk() if tree is not None else []
    cleans = not _MASKS.isdisjoint([n.op for n in inside])
    cleans |= op.operands.get("mask") is not None or bool(op.attrs.get("fill"))
    leaves = walk.plan.paths(tree).leaves if tree is not None else []
    checks = [c for n in inside if (c := _selection(walk.plan, n)) is not None]

    read = [leaf.name for leaf in leaves]

    def step(m: Member, v: tuple[Any, ...]) -> None:
        for over, columns in checks:
            _check(walk, op, m, v, over, columns)
        kept, number = walk.kept, m.number
        if not kept and not cleans:
            return
        clean = cleans or any([(number, name) in kept for name in read])
        change = kept.add if clean else kept.discard
        for name in targets:
            change((m.number, name))

    return step


def _selection(plan: Plan, n: Expr) -> tuple[list[Leaf], int] | None:
    """The places that a maximum or minimum along columns runs over, and how many columns it has; None for anything else."""
    if n.op not in ("reduce", "argmin", "argmax", "topk") or (n.op == "reduce" and n.attrs.get("op") not in ("max", "min")) or n.attrs.get("axis", 1) != 1:
        return None
    t = n.args[0].type
    if not isinstance(t, FragT) or t.rank < 2 or any(x.op in _MASKS for x in n.args[0].walk()):
        return None
    return plan.paths(n.args[0]).leaves, t.cols


def divided_by(walk: ValueWalk, label: Any) -> str | None:
    """The tensor of offsets that divides the axis along which a copy read, where its coordinate starts from one."""
    key = (label[0], label[2])
    if key not in walk.dividers:
        walk.dividers[key] = _divider(walk, label)
    return walk.dividers[key]


def _divider(walk: ValueWalk, label: Any) -> str | None:
    plan = walk.plan
    op = plan.program.ops[label[2]]
    coords, tensor = op.operands.get("coords"), plan.program.tensors.get(str(op.attrs.get("tensor")))
    if not isinstance(coords, tuple) or tensor is None or label[0] not in tensor.axes:
        return None
    prefix = trips.prefix_tensors(plan.program)
    at = coords[len(tensor.axes) - 1 - tensor.axes.index(label[0])]
    found = (n for n in trips.resolver_of(plan.program, plan.sites[op.id].role)(at).walk() if n.op == "ld" and n.attrs["tensor"] in prefix)
    return next((str(n.attrs["tensor"]) for n in found), None)


def end_of(walk: ValueWalk, m: Member, label: Any) -> int | None:
    """Where what belongs together with a tile's first element ends: the sequence, or the axis where a copy fills what lies beyond."""
    offsets = divided_by(walk, label)
    if offsets is not None:
        ends = (m.world.values(offsets, i) for i in range(1, 64))
        return next((n for n in ends if n > label[1]), None)
    program = walk.plan.program
    extent = walk.bounds.args.get(label[0], program.tunables.get(label[0])) if program.ops[label[2]].name in FILLING else None
    return extent if isinstance(extent, int) and label[1] < extent else None


def _check(walk: ValueWalk, op: Op, m: Member, v: tuple[Any, ...], leaves: list[Leaf], columns: int) -> None:
    if any((m.number, leaf.name) in walk.kept for leaf in leaves):
        return
    for leaf in leaves:
        label = moved(walk.held(m, leaf, v)[1], offset(leaf.col_from, v)) if leaf.col == 1 else ()
        if not label:
            continue
        end = end_of(walk, m, label)
        if end is not None and end < label[1] + columns:
            walk.filled(op, m, v, label)


__all__ = ["divided_by", "end_of", "fills"]

"""Elements that are combined one by one and lie at two places: of a product and its scales, of a tile and a vector along it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cake_ir.fact import fact
from cake_ir.program import Expr, Op, Program
from cake_verify.analyses.labels import UNKNOWN, Axes, Label
from cake_verify.analyses.sites import sites
from cake_verify.analyses.state import Member

if TYPE_CHECKING:
    from cake_verify.analyses.value_state import Beside, ValueState


def mixed(walk: ValueState, op: Op, m: Member, v: tuple[Any, ...], axis: int, old: Label, label: Label, product: Axes) -> Label:
    """Elements that are combined one by one and lie at two places of one axis, or along two axes of a product; of a product and something
    along an axis of its own, as its scales may be, the product says where they are."""
    assert old and label
    if (op.id, axis) in partials(walk.plan.program):
        return UNKNOWN
    if not product:
        _vector_of_tile(walk, op, m, v, axis, old, label)
    elif old[0] == label[0]:
        if (met := (op.id, axis, old[2], label[2])) not in walk.added:  # it may be two parts of one tensor that are meant: one of a kind leaves room for others
            walk.added.add(met)
            walk.clash("added", op, m, v, axis, old, label)
    elif old[0] in product and label[0] in product:
        walk.clash("transposed", op, m, v, axis, old, label)
    elif old[0] in product or label[0] in product:
        one, other = (old, label) if old[0] in product else (label, old)
        walk.beside.setdefault((op.id, axis, one[0], other[0]), {}).setdefault((m.cta.rank, m.index), []).append((one, other, m, v))
        return one
    return UNKNOWN


_RUNNING = frozenset({"add", "max", "min"})


@fact
def partials(program: Program) -> frozenset[tuple[int, int]]:
    """Operations that combine tile after tile into one place, `x = lm.max(x, s)`, with the axes along which that is reduced later: there every element stands for those of all tiles."""
    running: dict[tuple[str, str], list[int]] = {}
    reduced: dict[tuple[str, str], set[int]] = {}
    for s in sites(program).of("compute", "reduce_across"):
        e = s.op.operands.get("value")
        if isinstance(e, Expr) and e.op in _RUNNING and s.loops and s.loops[-1].kind != "tiles":
            for name in {str(a.attrs["name"]) for a in e.args if a.op == "var"}.intersection(s.targets):
                running.setdefault((s.role.name, name), []).append(s.op.id)
    if not running:
        return frozenset()
    for s in sites(program).ops:
        x = s.op.operands.get("x")
        if s.op.name == "reduce_across" and isinstance(x, Expr):
            _over(reduced, s.role.name, x, s.op.attrs.get("axis"))
        for o in s.op.operands.values():
            for n in o.parts() if isinstance(o, Expr) else ():
                if n.op in ("reduce", "sum"):
                    _over(reduced, s.role.name, n.args[0], n.attrs.get("axis"))
    return frozenset((number, axis) for key, numbers in running.items() for number in numbers for axis in reduced.get(key, ()))


def _over(reduced: dict[tuple[str, str], set[int]], role: str, x: Expr, axis: object) -> None:
    """Note the axes along which a name is reduced."""
    if x.op == "var":
        reduced.setdefault((role, str(x.attrs["name"])), set()).update((0, 1) if axis is None else (int(str(axis)),))


def _vector_of_tile(walk: ValueState, op: Op, m: Member, v: tuple[Any, ...], axis: int, one: Label, other: Label) -> None:
    """A tile that no product made and a vector along it (scales, zero points): how far apart they lie."""
    assert one and other
    if one[0] != other[0] or _is_vector(walk, one) == _is_vector(walk, other):
        return
    tile, vector = (other, one) if _is_vector(walk, one) else (one, other)
    tensor, other_tensor = (str(walk.plan.program.ops[x[2]].attrs.get("tensor")) for x in (tile, vector))
    walk.distances.setdefault((op.id, m.number, axis, tensor, other_tensor), {}).setdefault(vector[1] - tile[1], (tile, vector, m, v))


def _is_vector(walk: ValueState, label: Label) -> bool:
    assert label
    return walk.plan.program.ops[label[2]].attrs.get("form") in ("rowvec", "colvec")


def drifting(walk: ValueState) -> Iterator[tuple[Op, int, Beside]]:
    """Tiles and vectors along them that do not lie equally far apart in every round of one member."""
    for (number, member, axis, *_), seen in walk.distances.items():
        if len(seen) > 1 or (number, member, axis) in walk.together:
            yield walk.plan.program.ops[number], axis, list(seen.values())[-1]


__all__ = ["drifting", "mixed"]

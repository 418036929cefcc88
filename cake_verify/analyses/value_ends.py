"""Where what belongs together with a tile's first element ends: the sequence that offsets in memory mark off, or the axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cake_verify.analyses import trips
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.sites import sites
from cake_verify.analyses.state import Member

if TYPE_CHECKING:
    from cake_verify.analyses.value_walk import ValueWalk

FILLING = ("tma_load", "cp_async")
"""Copies that fill what lies beyond the tensor with zeros."""


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
    prefix = prefix_tensors(plan.program)
    at = coords[len(tensor.axes) - 1 - tensor.axes.index(label[0])]
    # What only says where to read a number (the entries of a row of CSR, whose numbers are blocks) divides another axis.
    found = (n for n in outside_reads(trips.resolver_of(plan.program, plan.sites[op.id].role)(at)) if n.op == "ld" and n.attrs["tensor"] in prefix)
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


_FOLLOWED = frozenset({"add", "sub", "mul", "param", "const", "var", "field", "role_index", "cta_rank", "cta_id"})


def follows_coordinates(walk: ValueWalk, label: Any) -> bool:
    """Whether a copy reads along its axis where sums of counts say, so that tiles lie as far apart as their numbers: no table and no remainder chooses places along any of its axes."""
    op = walk.plan.program.ops[label[2]]
    coords, tensor = op.operands.get("coords"), walk.plan.program.tensors.get(str(op.attrs.get("tensor")))
    if not isinstance(coords, tuple) or tensor is None or label[0] not in tensor.axes:
        return False
    prefix, resolve = prefix_tensors(walk.plan.program), trips.resolver_of(walk.plan.program, walk.plan.sites[op.id].role)
    if any(n.op == "var" and (walk.plan.sites[op.id].role, n.attrs["name"]) in sites(walk.plan.program).results for at in coords for n in resolve(at).parts()):
        return False  # looked up more than once under this name
    own = coords[len(tensor.axes) - 1 - tensor.axes.index(label[0])]
    return all((at is not own or n.op in _FOLLOWED) if n.op != "ld" else n.attrs["tensor"] in prefix for at in coords for n in outside_reads(resolve(at)))


__all__ = ["divided_by", "end_of", "follows_coordinates"]

"""Which MMAs make one asynchronous group: each by itself, or all of a `with lm.mma_group():` block."""

from __future__ import annotations

from itertools import pairwise

from cake_ir.derive.structure import sites
from cake_ir.fact import fact
from cake_ir.program import Program
from cake_ir.record import record


@record()
class MmaGroups:
    """Ids of the MMAs that open a group, and of those behind which it is committed; one alone does both.

    `follows` are those in front of which nothing happens since another MMA of their group.
    """

    opens: frozenset[int]
    closes: frozenset[int]
    follows: frozenset[int]


@fact
def wgmma_roles(program: Program) -> frozenset[str]:
    """Roles that issue products of warpgroups, of which alone groups can be in flight."""
    return frozenset(s.role for s in sites(program) if s.op.attrs.get("kind") == "wgmma")


@fact
def mma_groups(program: Program) -> MmaGroups:
    """The groups of a program. A block holds no loops or branches, so its MMAs execute in the order of their ids."""
    opens: set[int] = set()
    by: dict[object, list[int]] = {}
    for op in program.ops:
        if op.name == "mma":
            group = op.attrs.get("group")
            by.setdefault(("alone", op.id) if group is None else group, []).append(op.id)
    opens.update(min(ids) for ids in by.values())
    follows = {b.id for a, b in pairwise(program.ops) if a.name == b.name == "mma" and a.attrs.get("group") is not None and a.attrs.get("group") == b.attrs.get("group")}
    return MmaGroups(frozenset(opens), frozenset(max(ids) for ids in by.values()), frozenset(follows))

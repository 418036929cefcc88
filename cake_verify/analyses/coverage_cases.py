"""Outputs that a schedule stores in one case of what memory holds and not in the other, although the other case has its outputs too.

A condition on what memory holds divides tiles into two cases. Where some other output is stored outside of the condition, at places that the
same tiles decide, the author means both cases to leave results: an output that is stored in one of them only lacks the other.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from cake_ir.derive.structure import conjuncts
from cake_ir.program import Expr, If, Param, Program
from cake_ir.record import record
from cake_ir.types import FragT, TileT
from cake_verify.analyses.coverage import hole
from cake_verify.analyses.positions import Position, arguments, memory_alone, parameters
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import resolver_of


@record(eq=False)
class OneCase:
    """A store that runs only where `branch` takes its arm `arm`, and a store of another output, which runs whatever it takes, or in the other arm where this one has one, too."""

    store: Site
    branch: If
    arm: bool
    always: Site


def one_case(program: Program, stores: Sequence[Site], tensor: Param, outputs: Container[str]) -> OneCase | None:
    """A case in which a part of a tensor is not stored though another output is; None where every case is stored, or that is not known."""
    for s in stores:
        for depth, branch in enumerate(s.path):
            if not isinstance(branch, If):
                continue
            cond = resolver_of(program, s.role.name)(branch.cond)
            if not any(n.op == "ld" for n in cond.parts()) or not all(memory_alone(c) or _numbers(c) for c in conjuncts(cond)) or _from_memory(program, s):
                continue
            arm = _arm(s, branch)
            others = [x for x in stores if branch not in x.path or _arm(x, branch) is not arm]
            always = next((x for x in sites(program).of("store", "tma_store", "bulk_store") if str(x.op.attrs["tensor"]) in outputs and _beside(program, x, s, branch, depth)), None)
            if always is None:
                always = _in_the_other(program, s, branch, depth, outputs)
            if always is None or not _both(program, cond) or (others and hole(program, others, tensor) is None):
                continue
            return OneCase(s, branch, arm, always)
    return None


def _arm(s: Site, branch: If) -> bool:
    return next(arm for p, arm in s.branches() if p is branch)


def _numbers(e: Expr) -> bool:
    """Whether a condition is about launch arguments and numbers alone."""
    return all(n.op not in ("var", "field", "role_index", "slot_index", "cta_rank", "cta_id", "ld") for n in e.parts())


def _from_memory(program: Program, s: Site) -> bool:
    """Whether what memory holds decides where a store is."""
    coords, resolve = s.op.operands.get("coords"), resolver_of(program, s.role.name)
    return not isinstance(coords, tuple) or any(isinstance(e.type, FragT) or any(n.op == "ld" for n in resolve(e).parts()) for e in coords)


def _beside(program: Program, x: Site, s: Site, branch: If, depth: int) -> bool:
    """Whether a store of another tensor is around the branch's place, whatever the branch takes, and moved by what moves the other store."""
    if x.role is not s.role or x.op.attrs.get("tensor") == s.op.attrs.get("tensor") or x.path[:depth] != s.path[:depth] or any(isinstance(p, If) for p in x.path[depth:]):
        return False
    moving = _moving(program, s)
    return bool(moving) and moving <= _moving(program, x) and not _from_memory(program, x)


def _in_the_other(program: Program, s: Site, branch: If, depth: int, outputs: Container[str]) -> Site | None:
    """A store of another output in the arm that `s` is not in, where its own arm stores that, too: the author means both cases to leave results."""
    arms: dict[str, dict[bool, Site]] = {}
    moving = _moving(program, s)
    for x in sites(program).of("store", "tma_store", "bulk_store"):
        tensor = str(x.op.attrs["tensor"])
        if x.role is not s.role or tensor == s.op.attrs["tensor"] or tensor not in outputs or x.path[: depth + 1] != s.path[: depth + 1]:
            continue
        if moving and not any(isinstance(p, If) for p in x.path[depth + 1 :]) and not _from_memory(program, x) and moving <= _moving(program, x):
            arms.setdefault(tensor, {})[_arm(x, branch)] = x
    own = _arm(s, branch)
    return next((found[not own] for found in arms.values() if len(found) == 2 and not all(_number(x) for x in found.values())), None)


def _number(s: Site) -> bool:
    """Whether a store writes a number of the text: two of them tell readers which case it is."""
    x = s.op.operands.get("x")
    return isinstance(x, Expr) and x.op == "const"


def _moving(program: Program, s: Site) -> set[str]:
    """The tile fields that decide where a store is."""
    coords, resolve = s.op.operands.get("coords"), resolver_of(program, s.role.name)
    assert isinstance(coords, tuple)  # as of every store that `_from_memory` let pass
    return {f"{n.args[0].attrs.get('name')}.{n.attrs['name']}" for e in coords for n in resolve(e).parts() if n.op == "field" and isinstance(n.args[0].type, TileT)}


def _both(program: Program, cond: Expr) -> bool:
    """Whether what is declared of the values in memory leaves both cases open."""
    names = parameters(program, [cond])
    for args in arguments(program, names, (2,), 4):
        taken = {Position(program, args, {}, high=high).value(cond) for high in (False, True)}
        if None in taken or len({bool(t) for t in taken}) == 2:
            return True
    return False


__all__ = ["OneCase", "one_case"]

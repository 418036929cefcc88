"""Masks that are to keep out what a copy filled in beyond a tensor's end, and do not; numbers of columns that two tiles share.

`lm.where(lm.iota(x, axis=1, base=b) < n, x, -lm.inf)` says that columns from n on are not there. Where the columns of x run along an axis
of a tensor (its declared extent) and n is that extent, b is where they start: one more, or another base, lets zeros in that are no elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cake_ir.derive.structure import nodes
from cake_ir.program import Assign, Expr, Op
from cake_verify.analyses import trips
from cake_verify.analyses.fragment_paths import offset
from cake_verify.analyses.labels import moved
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.sites import sites
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_ends import divided_by, end_of

if TYPE_CHECKING:
    from cake_verify.analyses.value_walk import ValueWalk

def mask_end(walk: ValueWalk, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
    """The check of the masks in one computation; None where it has none."""
    tree = walk.plan.code.ops[op.id].trees.get("value")
    if op.name != "compute" or tree is None:
        return None
    role = walk.plan.sites[op.id].role
    found = []
    for node in tree.parts():
        if node.op == "where" and any(x.op == "const" and abs(float(x.attrs["value"])) == float("inf") for x in node.args[1:]):  # type: ignore[arg-type]  # a number by its type
            limit = walk.bounds.limit(node.args[0])
            names = {n for e in _conditions(walk, op, role) for n in _bounded_by(walk, role, e)}
            if limit is not None and names:
                found.append((limit, walk.plan.paths(node.args[1]).leaves, names))
    if not found:
        return None

    def check(m: Member, v: tuple[Any, ...]) -> None:
        for limit, leaves, names in found:
            passed = limit(m, v)
            if passed is None or passed[1] is None:
                continue
            for leaf in leaves:
                if leaf.col != 1:
                    continue
                label = moved(walk.held(m, leaf, v)[1], offset(leaf.col_from, v))
                if not label or not names & {label[0], divided_by(walk, label)}:
                    continue
                end = end_of(walk, m, label)
                if end is not None and label[1] + passed[1] > end:
                    walk.masked(op, m, v, label)

    return check


def _conditions(walk: ValueWalk, op: Op, role: str) -> Iterator[Expr]:
    """The conditions of an operation's masks, names followed to what they were bound to."""
    value = op.operands["value"]
    for node in value.parts() if isinstance(value, Expr) else ():
        if node.op == "where":
            yield from _followed(walk, node.args[0], role, 4)


def _followed(walk: ValueWalk, e: Expr, role: str, depth: int) -> Iterator[Expr]:
    if e.op == "var" and depth:
        for s in sites(walk.plan.program).results.get((role, str(e.attrs["name"])), ()):
            bound = s.op.operands.get("value")
            if isinstance(bound, Expr):
                yield from _followed(walk, bound, role, depth - 1)
    elif e.op in ("and", "bitand"):
        for a in e.args:
            yield from _followed(walk, a, role, depth)
    else:
        yield e


def _bounded_by(walk: ValueWalk, role: str, e: Expr) -> Iterator[str]:
    """The argument, or the tensor of offsets, by which a comparison with positions is bounded, give or take one element."""
    if e.op not in ("lt", "le") or len(e.args) != 2:
        return
    constant, live = trips.linear(trips.resolver_of(walk.plan.program, role)(e.args[1]))
    if not -1 <= constant + (e.op == "le") <= 1:
        return
    if len(live) == 1 and next(iter(live.values())) == 1:
        yield next(iter(live))
    elif sorted(live.values()) == [-1, 1]:  # one offset less the one before it: the length of a sequence
        heads = {t.partition("[")[0] for t in live}
        yield from heads & prefix_tensors(walk.plan.program) if len(heads) == 1 else ()


# ------------------------------------------------------------------ numbers of columns


def numbering(walk: ValueWalk, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
    """What is kept of a running minimum or maximum: which columns have got which numbers since it started."""
    if walk.selecting is None:
        inside = nodes(walk.plan.program)
        found = [s for s in walk.plan.sites.values() if s.op.name == "compute" and any([n.op in ("argmin", "argmax") for n in inside[s.op.id]])]
        walk.selecting = {t for s in found if isinstance(s.stmt, Assign) for t in s.stmt.targets}
    if walk.selecting.isdisjoint(targets):
        return None
    node = _selection(op)
    if node is None:

        def restart(m: Member, v: tuple[Any, ...]) -> None:
            for name in targets:
                walk.numbers.pop((m.number, name), None)

        return restart
    tree = next(n for n in walk.plan.code.ops[op.id].trees["value"].parts() if n.op in ("argmin", "argmax"))
    leaves, base = walk.plan.paths(tree.args[0]).leaves, walk.bounds.scalar(tree.args[1])

    def number(m: Member, v: tuple[Any, ...]) -> None:
        label = next((moved(walk.held(m, leaf, v)[1], offset(leaf.col_from, v)) for leaf in leaves if leaf.col == 1), ())
        if not label:
            return
        first = base(m, v)
        seen = walk.numbers.setdefault((m.number, targets[0]), {})
        other = seen.setdefault(first, label)
        if other[0] == label[0] and other[1] != label[1]:
            walk.numbered(op, m, v, other, label)

    return number


def selected(op: Op) -> str:
    """The name of the running selection in a computation."""
    node = _selection(op)
    return node.op if node is not None else "argmin"


def _selection(op: Op) -> Expr | None:
    value = op.operands.get("value")
    return next((n for n in value.parts() if n.op in ("argmin", "argmax")), None) if isinstance(value, Expr) else None

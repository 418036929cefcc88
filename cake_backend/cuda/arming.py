"""Which loads share one `arrive.expect_tx`, in front of which of them it stands, and how many bytes it announces.

The set of a phase is all loads of one role that name the same barrier and the same slot. Their bytes are announced once, in front of the
first of them, because a barrier whose bytes arrive before they are announced could complete early.
"""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda.faults import not_lowered
from cake_ir.program import Assign, Expr, For, If, Op, Stmt, op_of, statements

LOADS = ("tma_load", "bulk_load", "tma_gather")


@dataclass(slots=True)
class ArmedSet:
    """The loads of one phase: `members` by operation id with the trip counts of the loops between the arming point and the load."""

    barrier: str
    stage: Expr | None
    members: list[tuple[Op, tuple[Expr, ...]]]


def slot_key(e: object) -> str:
    """Text that is equal for two expressions of the same slot."""
    if not isinstance(e, Expr):
        return ""
    inner = ",".join(slot_key(a) for a in e.args)
    named = ",".join(f"{k}={v}" for k, v in sorted(e.attrs.items()) if k in ("name", "value", "ring", "back"))
    return f"{e.op}[{named}]({inner})"


def analyse(body: tuple[Stmt, ...]) -> tuple[dict[int, ArmedSet], dict[int, ArmedSet]]:
    """Sets by the id of their first load, and by the id of the loop in front of which they are armed."""
    at_load: dict[int, ArmedSet] = {}
    at_loop: dict[int, ArmedSet] = {}
    _block(body, at_load, at_loop, frozenset())
    return at_load, at_loop


def _bound(block: tuple[Stmt, ...]) -> list[str]:
    """Names that a block binds, nested blocks included."""
    return [t for s in statements(block) for t in (s.targets if isinstance(s, Assign) else (s.var,) if isinstance(s, For) else ())]


def _rebound(stmt: Stmt, names: set[str]) -> bool:
    return isinstance(stmt, Assign) and any(t in names for t in stmt.targets)


def _loads(stmt: Stmt) -> list[tuple[Op, tuple[Expr, ...], tuple[str, ...]]]:
    """Loads inside a statement with the trip counts around them and the names bound on the way."""
    op = op_of(stmt)
    if op is not None:
        return [(op, (), ())] if op.name in LOADS else []
    if isinstance(stmt, For):
        inside = [x for s in stmt.body for x in _loads(s)]
        bound = (*_bound(stmt.body), stmt.var)
        trips = _trips(stmt)
        return [(op, (*trips, *more), (*bound, *names)) for op, more, names in inside]
    if isinstance(stmt, If):
        return [x for s in (*stmt.then, *stmt.orelse) for x in _loads(s)]
    return []


def _trips(loop: For) -> tuple[Expr, ...]:
    if loop.lo is None or loop.hi is None:
        return (Expr("unknown", span=loop.head),)
    if loop.lo.op == "const" and loop.lo.attrs["value"] == 0:
        return (loop.hi,)
    return (Expr("sub", (loop.hi, loop.lo), {}, loop.hi.type, loop.head),)


def _names(e: object) -> set[str]:
    return {str(x.attrs["name"]) for x in e.parts() if x.op == "var"} if isinstance(e, Expr) else set()


def _block(block: tuple[Stmt, ...], at_load: dict[int, ArmedSet], at_loop: dict[int, ArmedSet], armed_outside: frozenset[tuple[str, str]]) -> None:
    open_sets: dict[tuple[str, str], ArmedSet] = {}
    for s in block:
        for key, armed in list(open_sets.items()):
            if _rebound(s, _names(armed.stage)):
                del open_sets[key]
        if isinstance(s, If):
            for op, _, _ in _loads(s):
                if (str(op.attrs["barrier"]), slot_key(op.operands.get("stage"))) in open_sets:
                    not_lowered("a load under a condition that shares its barrier's phase with an unconditional one", op.span)
            _block(s.then, at_load, at_loop, armed_outside)
            _block(s.orelse, at_load, at_loop, armed_outside)
            continue
        looped: set[tuple[str, str]] = set()
        for op, trips, bound in _loads(s):
            stage = op.operands.get("stage")
            key = (str(op.attrs["barrier"]), slot_key(stage))
            if key in armed_outside:
                continue
            if isinstance(s, For) and _names(stage) & set(bound):
                continue  # the loop makes the slot itself: its own block arms it
            if key in open_sets:
                open_sets[key].members.append((op, trips))
            else:
                open_sets[key] = armed = ArmedSet(key[0], stage if isinstance(stage, Expr) else None, [(op, trips)])
                if isinstance(s, For):
                    at_loop[id(s)] = armed
                else:
                    at_load[op.id] = armed
            looped.add(key)
        if isinstance(s, For):
            _block(s.body, at_load, at_loop, armed_outside | looped)

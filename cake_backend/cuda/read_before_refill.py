"""Arrivals and meetings behind which the copy engine, or a peer CTA's sends, refill bytes that threads have read with ordinary loads.

An arrival releases what the thread has done, but a shared load is done, for the generic proxy, once it is queued in order: its value may
still be on its way. Neither the copy engine nor what a peer CTA sends queues behind it. Where loads had to wait (32 lanes on one bank), an H200 refilled
the stage under them in one word of seven, or of sixteen by sends (`docs/hardware.md`); a proxy fence between the loads and the arrival closes that.
Stores and `cp.async` of the same SM do queue.
"""

from __future__ import annotations

from cake_backend.cuda.resources import view_rings
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Arrive, FenceProxy, Issue, Touch
from cake_ir.program import Expr, For, If, Op, Program, Role, Stmt, op_of, statements
from cake_ir.types import ViewT


def fenced_releases(program: Program, role: Role, body: tuple[Stmt, ...]) -> frozenset[int]:
    """Ids of a role's arrivals in front of which its threads' loads of the released slots need a proxy fence.

    A meeting releases as well, to a role that takes part in it and refills: a role that fetches for itself has no other way.
    """
    rings = view_rings(program)
    refilled = _refilled(program)
    found: set[int] = set()

    def scan(block: tuple[Stmt, ...], read: frozenset[str]) -> frozenset[str]:
        for s in block:
            if isinstance(s, For):
                read |= scan(s.body, read)
                read |= scan(s.body, read)
            elif isinstance(s, If):
                read = scan(s.then, read) | scan(s.orelse, read)
            elif (op := op_of(s)) is not None:
                effects = effects_of(op, program)
                if any(isinstance(e, FenceProxy) for e in effects):
                    read = frozenset()
                read |= _loads(program, op) & refilled.keys()
                if _released(program, op, read, rings, refilled):
                    found.add(op.id)
                    read = frozenset()
        return read

    scan(body, frozenset())
    return frozenset(found)


def _released(program: Program, op: Op, read: frozenset[str], rings: dict[str, str], refilled: dict[str, frozenset[str]]) -> bool:
    """Whether an operation hands views that were read to somebody who refills them."""
    name = str(op.attrs.get("barrier"))
    if any(isinstance(e, Arrive) for e in effects_of(op, program)) and name in program.barriers:
        return any(rings.get(v) == program.barriers[name].pipeline for v in read)
    if op.name == "sync" and name in program.named:
        return any(refilled[v] & set(program.named[name].roles) for v in read)
    return False


def _refilled(program: Program) -> dict[str, frozenset[str]]:
    """Views that the copy engine or a peer's sends write, with the roles that have the copy engine do so: a meeting tells no peer."""
    found: dict[str, frozenset[str]] = {}
    for block in program.body:
        for s in statements(block.body):
            op = op_of(s)
            for e in effects_of(op, program) if op is not None else ():
                if not isinstance(e, Issue):
                    continue
                for t in e.touches:
                    x = op.operands.get(t.operand) if op is not None else None
                    if t.space == "smem" and (t.proxy == "async" or e.engine == "st_async") and "w" in t.mode and isinstance(x, Expr) and isinstance(x.type, ViewT):
                        found[x.type.view] = found.get(x.type.view, frozenset()) | ({block.role} if t.proxy == "async" else set())
    return found


def _loads(program: Program, op: Op) -> frozenset[str]:
    """Views that an operation's threads read through the generic proxy."""
    touches = [e for e in effects_of(op, program) if isinstance(e, Touch)]
    return frozenset(
        x.type.view for t in touches if t.space == "smem" and t.proxy == "generic" and "r" in t.mode
        if isinstance(x := op.operands.get(t.operand), Expr) and isinstance(x.type, ViewT)
    )  # fmt: skip

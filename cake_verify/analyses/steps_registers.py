"""Fragments in registers as the machine reads and writes them: what is asynchronous still holds them, or nobody has written them."""

from __future__ import annotations

from typing import Any

from cake_ir.program import Expr, Op
from cake_verify.analyses.plan import Plan, Step
from cake_verify.analyses.state import Found, Member

Values = tuple[Any, ...]


def registers(plan: Plan, op: Op, held: bool) -> Step | None:
    """Reads and writes of fragments; `held` says whether anything asynchronous may hold registers in this role."""
    touch = plan.registers[op.id]
    reads, writes, acc, clears = touch.reads, touch.writes, touch.acc, touch.clears
    if not touch.any:
        return None
    start = op.operands.get("init")
    index = plan.code.ops[op.id].index.get("init")
    fresh = isinstance(start, Expr) and start.op == "const" and bool(start.attrs["value"])
    if callable(reads) or callable(writes) or callable(acc) or acc:

        def general(m: Member, v: Values) -> Any:
            r = reads(v) if callable(reads) else reads
            d = acc(v) if callable(acc) else acc
            w = (writes(v) if callable(writes) else writes) | d
            if d and not fresh and not (index is not None and v[index]):
                r |= d
            return _registers(m, r, w)

        return general
    if clears:

        def clear(m: Member, v: Values) -> Any:
            m.defined &= ~clears
            return None

        return clear

    if not held:

        def alone(m: Member, v: Values) -> Any:
            if reads & ~m.defined:
                raise Found("S029", places=reads & ~m.defined)
            m.defined |= writes
            return None

        return alone

    both = reads | writes

    def fixed(m: Member, v: Values) -> Any:
        if both & (m.acc | m.held | m.tmem_busy) or reads & ~m.defined:
            _registers(m, reads, writes)
        m.defined |= writes
        return None

    return fixed


def _registers(m: Member, r: int, w: int) -> None:
    bad = r & m.acc
    if bad:
        raise Found("S005", places=bad, write=False)
    bad = w & (m.acc | m.held)
    if bad:
        raise Found("S005", places=bad, write=True)
    bad = (r | w) & m.tmem_busy
    if bad:
        raise Found("S005", places=bad, write=False, tmem=True)
    if r & ~m.defined:
        raise Found("S029", places=r & ~m.defined)
    m.defined |= w
    return None

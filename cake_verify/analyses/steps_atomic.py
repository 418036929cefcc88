"""Atomic updates of shared memory as the machine executes them: they commute with each other and with nothing else."""

from __future__ import annotations

from typing import Any

from cake_ir.program import Op
from cake_verify.analyses.plan import Plan, Step
from cake_verify.analyses.state import Found, Member, open_epoch

Values = tuple[Any, ...]
ATOMIC = "atomic"
"""First entry of what is remembered of bytes that only atomic updates have touched since they were last written; the bits follow."""


def updates(kind: Any) -> int:
    """The bits of the atomic updates since the last ordinary access, 0 where the last access was an ordinary one."""
    return kind[1] if isinstance(kind, tuple) and kind and kind[0] == ATOMIC else 0


def atomic_update(plan: Plan, op: Op, operand: str) -> Step:
    """All lanes of the member combine with elements of a view, which ones only the data says."""
    atoms = plan.lookup(op, operand)
    at, number = plan.code.ops[op.id].index[operand], op.id

    def step(m: Member, v: Values) -> Any:
        bit = m.cur or open_epoch(m)
        m.gw |= bit
        c, w = m.cta, m.world
        W, R, by, unknown = c.W, c.R, c.O, ~m.K
        for a in atoms[v[at]]:
            if not W[a]:
                raise Found("S027", cta=c, atom=a)
            others = updates(c.Y[a])
            missing = (W[a] | R[a]) & unknown & ~others
            if missing:
                raise Found("S003", cta=c, atom=a, missing=missing)
            w.used.add(by[a])
            R[a] |= others
            W[a] = c.G[a] = bit
            by[a] = number
            c.Y[a] = (ATOMIC, others | bit)
        w.wrote.add(number)
        return None

    return step

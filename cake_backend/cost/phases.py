"""Bytes of the phases that loads complete, and those that a block fetches for them itself."""

from __future__ import annotations

from cake_backend.cost.demand import Demand
from cake_ir.derive.transactions import transactions
from cake_ir.program import Program


def phase_bytes(program: Program) -> dict[int, float]:
    """Bytes that complete the phase to which a load contributes, by operation id: its own set, and one of every other role."""
    sets, _ = transactions(program)
    out: dict[int, float] = {}
    for own in sets:
        others = {s.role: s.bytes for s in reversed(sets) if s.barrier == own.barrier and s.role != own.role}
        for site in own.loads:
            out[site.op.id] = own.bytes + sum(others.values())
    return out


def own_bytes(program: Program, demands: dict[int, Demand]) -> dict[int, float]:
    """Bytes that one block itself fetches in the set of loads to which a load belongs, by operation id: less than it gets under multicast."""
    out: dict[int, float] = {}
    for own in transactions(program)[0]:
        total = sum(p.size for site in own.loads for p in demands[site.op.id].pieces if p.kind == "tma")
        out.update({site.op.id: total for site in own.loads})
    return out

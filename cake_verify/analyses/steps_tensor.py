"""Operands of a tensor-core product in tensor memory, as the machine executes them: read until the product's commit has arrived."""

from __future__ import annotations

from typing import Any

from cake_ir.program import Expr, Op
from cake_ir.types import TmemT
from cake_verify.analyses.plan import Plan, Step
from cake_verify.analyses.state import Found, Member


def tensor_operands(plan: Plan, op: Op) -> Step | None:
    """The reads of a product's operands in tensor memory; None where it has none there. Comes behind the step that issues the product."""
    index = plan.code.ops[op.id].index
    reads = []
    for name in ("a", "b"):
        e = op.operands.get(name)
        if isinstance(e, Expr) and isinstance(e.type, TmemT) and name in index:
            reads.append((index[name], plan.columns(e.type)))
    if not reads:
        return None
    acc = op.operands["acc"]
    assert isinstance(acc, Expr) and isinstance(acc.type, TmemT)
    result, at = plan.columns(acc.type), index["acc"]

    def step(m: Member, v: tuple[Any, ...]) -> Any:
        c, unknown = m.cta, ~m.K
        bit = 1 << (m.world.top - 1)
        for i, find in reads:
            region = find(v[i])
            written = set(result(v[at]))
            for a in region:
                if a in written:
                    raise Found("S007", cta=c, atom=a)
                if not c.W[a]:
                    raise Found("S027", cta=c, atom=a)
                if c.W[a] & unknown:
                    raise Found("S004", cta=c, atom=a, missing=c.W[a])
                c.R[a] |= bit
                m.world.used.add(c.O[a])
        return None

    return step

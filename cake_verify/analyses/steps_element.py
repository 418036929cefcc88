"""Single elements of shared memory as the machine reads them."""

from __future__ import annotations

from typing import Any

from cake_ir.program import Expr, Op
from cake_verify.analyses.plan import Plan, Step, view_type
from cake_verify.analyses.read_numbers import from_memory
from cake_verify.analyses.state import Member
from cake_verify.analyses.steps_memory import generic_read

Values = tuple[Any, ...]


def element_read(plan: Plan, op: Op, role: str) -> Step:
    """All lanes read one element of a view; one whose number comes from memory may be any."""
    index = plan.code.ops[op.id].index
    i = op.operands.get("i")
    if isinstance(i, Expr) and from_memory(plan.program, role, i):
        return generic_read(plan, op, "view")
    one = generic_read(plan, op, "view", plan.lookup(op, "view", rows=1, cols=1))
    t = view_type(op, "view")
    at, number, width = index["view"], index.get("i"), t.shape[-1]

    def step(m: Member, v: Values) -> Any:
        row, col = divmod(0 if number is None else v[number], width)
        if t.transposed:
            row, col = col, row
        n, r, c = v[at]
        return one(m, (*v[:at], (n, r + row, c + col), *v[at + 1 :]))

    return step


__all__ = ["element_read"]

"""S013: a store runs past the end of its sequence."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_verify.analyses import ranges, trips
from cake_verify.analyses.scalar_operations import apply
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import SEQUENCES

PAGE = Page(
    code="S013",
    title="a store runs past the end of its sequence",
    statement="Where offsets in memory divide the rows (`lm.ld(G, i)` and `lm.ld(G, i + 1)`), a store stays between them: it says `rows=`, or has a mask; "
    "and it writes all rows that are left, be it a single one.",
    why="A tensor map clips at the end of the tensor, not of a sequence: the first rows of the next sequence would be spoilt.",
    failing=edit(SEQUENCES, (", rows=lm.min(64, eos - bos - i * 64))", ")")),
    passing=SEQUENCES,
    limits="That the offsets grow is an obligation of the launcher. Stores with a mask are taken to be right; rows of grouped tiles are Q001.",
)


def check(program: Program) -> Iterator[Fault]:
    """Stores of some rows under a condition on their number that a single row does not meet."""
    for s in ranges.live(program):
        rows = s.op.operands.get("rows")
        if not isinstance(rows, Expr) or s.op.name not in ("tma_store", "bulk_store"):
            continue
        resolve = trips.resolver_of(program, s.role.name)
        own = trips.canonical(resolve(rows))
        for branch, arm in s.branches():
            holds = _for_one(resolve(branch.cond), own)
            if holds is not None and holds is not arm:
                yield Fault("S013", "rows that stand alone are never stored: the condition around this store fails where a single row is left", branch.cond.span, ((s.op.span, "stored here"),),
                            "ask whether any row is left: `> 0`", (), {"role": s.role.name, "expected": 1, "found": 0})  # fmt: skip
                break


def _for_one(cond: Expr, own: str) -> bool | None:
    """Whether a comparison of the number of rows with a constant holds for one row; None where it is another condition."""
    if cond.op not in ("lt", "le", "gt", "ge", "eq", "ne"):
        return None
    values = [1 if trips.canonical(a) == own else a.attrs.get("value") if a.op == "const" else None for a in cond.args]
    if any(trips.canonical(a) == own for a in cond.args) and all(isinstance(v, int) for v in values):
        return bool(apply(cond.op, values))
    return None

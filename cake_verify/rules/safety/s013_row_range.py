"""S013: a store runs past the end of its sequence."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.structure import conjuncts
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program, Stmt, op_of, statements
from cake_ir.types import FragT
from cake_verify.analyses import ranges, trips
from cake_verify.analyses.runs import defined
from cake_verify.analyses.scalar_operations import apply
from cake_verify.analyses.sites import Site
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import SEQUENCES

PAGE = Page(
    code="S013",
    title="a store runs past the end of its sequence",
    statement="Where offsets in memory divide the rows (`lm.ld(G, i)` and `lm.ld(G, i + 1)`), a store stays between them: it says `rows=`, or has a mask; "
    "and it writes all rows that are left, be it a single one, also where a mask says how many they are.",
    why="A tensor map clips at the end of the tensor, not of a sequence: the first rows of the next sequence would be spoilt.",
    failing=edit(SEQUENCES, (", rows=lm.min(64, eos - bos - i * 64))", ")")),
    passing=SEQUENCES,
    limits="That the offsets grow is an obligation of the launcher. Stores with a mask are taken to be right; rows of grouped tiles are Q001.",
)


_STORES = ("tma_store", "bulk_store", "store")


def check(program: Program) -> Iterator[Fault]:
    """Stores of some rows under a condition on their number that a single row does not meet."""
    for s in ranges.live(program):
        resolve = trips.resolver_of(program, s.role.name)
        conds = [(p.cond, arm) for p, arm in s.branches() if not _stored(p.orelse if arm else p.then, s)] if s.op.name in _STORES else []
        counts = {trips.canonical(resolve(rows)) for rows in _rows(program, s)} if conds else set()
        for cond, arm in conds if counts else ():
            if any((holds := _for_one(resolve(cond), own)) is not None and holds is not arm for own in counts):
                yield Fault("S013", "rows that stand alone are never stored: the condition around this store fails where a single row is left", cond.span, ((s.op.span, "stored here"),),
                            "ask whether any row is left: `> 0`", (), {"role": s.role.name, "expected": 1, "found": 0})  # fmt: skip
                break


def _rows(program: Program, s: Site) -> Iterator[Expr]:
    """The number of rows that a store writes, as it says or as its mask does."""
    rows, mask = s.op.operands.get("rows"), s.op.operands.get("mask")
    if isinstance(rows, Expr) and s.op.name != "store":
        yield rows
    for part in conjuncts(defined(program, s.role.name, mask)) if isinstance(mask, Expr) else ():
        if part.op == "in_bounds" and not isinstance(part.args[1].type, FragT):
            yield part.args[1]


def _stored(body: tuple[Stmt, ...], s: Site) -> bool:
    """Whether the other arm stores to the tensor too: a row that stands alone may be looked after there."""
    return any((op := op_of(x)) is not None and op.name in _STORES and op.attrs.get("tensor") == s.op.attrs.get("tensor") for x in statements(body))


def _for_one(cond: Expr, own: str) -> bool | None:
    """Whether a comparison of the number of rows with a constant holds for one row; None where it is another condition."""
    if cond.op not in ("lt", "le", "gt", "ge", "eq", "ne"):
        return None
    values = [1 if trips.canonical(a) == own else a.attrs.get("value") if a.op == "const" else None for a in cond.args]
    if any(trips.canonical(a) == own for a in cond.args) and all(isinstance(v, int) for v in values):
        return bool(apply(cond.op, values))
    return None

"""Which part of a tile an operation takes, and which of several parts is the odd one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cake_ir.program import Assign, Expr, Op, statements
from cake_ir.record import record
from cake_ir.span import Span
from cake_ir.types import ViewT
from cake_verify.analyses.affine import Affine, affine
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.trips import spoken


@record()
class Slice:
    """One `rows` or `cols` of a view operand: the operation, where the part starts, and what other operations of the role write instead."""

    op: Op
    lo: Expr
    form: Affine | None
    span: Span
    instead: str = ""
    n: int = 0


def slices(plan: Plan, op: Op) -> Iterator[Slice]:
    """The parts that an operation's view operands take, view names followed to their definitions."""
    role = plan.sites[op.id].role
    for name, e in op.operands.items():
        if not isinstance(e, Expr) or not isinstance(e.type, ViewT):
            continue
        span = op.spans.get(name, op.span)
        for _ in range(20):
            assert isinstance(e, Expr)  # definitions of views are expressions
            if e.op in ("rows", "cols"):
                yield Slice(op, e.args[1], affine(plan.program, role, e.args[1]), e.span if e.span.line else span, n=int(e.attrs["n"]))  # type: ignore[call-overload]  # a number of rows
            if e.op == "var":
                found = _definition(plan, role, str(e.attrs["name"]))
                if found is None:
                    break
                e, span = found.value, found.span
                continue
            if not e.args:
                break
            e = e.args[0]


def _definition(plan: Plan, role: str, name: str) -> Assign | None:
    for block in plan.program.body:
        if block.role == role:
            for s in statements(block.body):
                if isinstance(s, Assign) and name in s.targets and isinstance(s.value, Expr):
                    return s
    return None


def odd_slice(plan: Plan, op: Op) -> Slice | None:
    """The part of the role's operations whose start differs from what most of them take; None where none does."""
    role = plan.sites[op.id].role
    found = [s for site in plan.sites.values() if site.role == role for s in slices(plan, site.op)]
    found = [s for s in found if s.form is not None]
    moving = Counter(_key(s) for s in found if s.form is not None and s.form.terms)
    if not moving:
        return _still(plan, role, found)
    usual = max(moving, key=lambda k: (moving[k], all(c > 0 for _, c in k[1]) and not k[0]))
    text = next((spoken(s.lo) for s in found if _key(s) == usual), "")
    odd = [s for s in found if _key(s) != usual and _related(s, usual)]
    if not odd:
        return None
    mine = [s for s in odd if s.op is op]
    s = (mine or odd)[0]
    return Slice(s.op, s.lo, s.form, s.span, text)


def _still(plan: Plan, role: str, found: list[Slice]) -> Slice | None:
    """A part that starts at one place for all members, where nothing in the role takes a member's own."""
    if plan.program.roles[role].members == 1 or not found:
        return None
    s = found[0]
    return Slice(s.op, s.lo, s.form, s.span, f"{s.n} * {role}.index")


def _key(s: Slice) -> tuple[int, tuple[tuple[str, int], ...]]:
    assert s.form is not None
    return s.form.constant, tuple(sorted(s.form.terms.items()))


def _related(s: Slice, usual: tuple[int, tuple[tuple[str, int], ...]]) -> bool:
    """Whether a start is a variant of the usual one: constant where that moves, or moved by other amounts of the same things."""
    assert s.form is not None
    return not s.form.terms or set(s.form.terms) <= {n for n, _ in usual[1]}

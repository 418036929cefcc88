"""The access that met a fault, and what several reports say about accesses."""

from __future__ import annotations

from cake_ir.fault import Fix
from cake_ir.ops.effects import Issue
from cake_ir.ops.scales import region_of
from cake_ir.program import Expr, Op
from cake_ir.span import Span
from cake_ir.types import ViewT
from cake_verify.analyses.replay import Entry, Replay
from cake_verify.analyses.state import Cta, Found, Member
from cake_verify.analyses.words import span_of


class Site:
    """The access that met the fault: its member, operation, the view operand that touches the atom."""

    def __init__(self, r: Replay, found: Found) -> None:
        assert found.member is not None and found.member.pending is not None
        self.member: Member = found.member
        self.values = found.member.pending
        self.op: Op = r.plan.program.ops[self.values[0]]
        self.atom: int = found.data["atom"]
        self.cta: Cta = found.data["cta"]
        self.operand = next(iter(self._operands(r)), "view")

    def _operands(self, r: Replay) -> list[str]:
        entry = Entry(len(r.log), self.member, self.op, self.values, {}, 0, 0, 0, ())
        return [o for o, _, _ in r.touched(entry, self.atom, self.cta)]

    @property
    def view(self) -> str:
        return view_of(self.op, self.operand)

    @property
    def span(self) -> Span:
        return span_of(self.op, self.operand) if self.operand in ("a", "b", "scale_a", "scale_b", "scratch") else self.op.span


def view_of(op: Op, operand: str) -> str:
    e = op.operands.get(operand)
    region = region_of(e)
    return e.type.view if isinstance(e, Expr) and isinstance(e.type, ViewT) else region.tmem if region is not None else "shared memory"


def engine_of(r: Replay, op: Op) -> str | None:
    """The asynchronous engine that an operation starts, if it does."""
    return next((e.engine for e in r.effects(op) if isinstance(e, Issue)), None)


def title(fixes: list[Fix], otherwise: str) -> str:
    """The help line: what the first fix does, else the advice."""
    return fixes[0].title if fixes else otherwise

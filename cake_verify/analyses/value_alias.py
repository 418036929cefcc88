"""Bytes that a view is read through although another view's write has taken their place, in order.

Views may share bytes, one after the other. An operation that has read a slot as its own view's writes filled it, and reads it again when
another view's write lies there that has readers of its own, wanted what was there before.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import TYPE_CHECKING, Any

from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Touch
from cake_ir.program import Expr, Op, Program
from cake_ir.types import ViewT
from cake_verify.analyses.regions import layout_of
from cake_verify.analyses.sites import sites
from cake_verify.analyses.state import Member

if TYPE_CHECKING:
    from cake_verify.analyses.value_walk import ValueWalk


@fact
def shared(program: Program) -> frozenset[str]:
    """The views that share bytes with another one."""
    spans = []
    for view in program.views.values():
        layout = layout_of(view)
        spans.append((view.pool, view.offset, view.offset + (layout.stage_bytes or layout.rows * layout.row_bytes) * layout.stages, view.name))
    return frozenset(n for a, b in permutations(spans, 2) if a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for n in (a[3], b[3]))


@fact
def _read(program: Program) -> frozenset[str]:
    """The views that something reads."""
    return frozenset(e.type.view for s in sites(program).ops for e in _operands(program, s.op) if isinstance(e.type, ViewT))


def _operands(program: Program, op: Op, mode: str = "r") -> list[Expr]:
    touches = [t for e in effects_of(op, program) for t in (e.touches if isinstance(e, Issue) else (e,) if isinstance(e, Touch) else ())]
    found = [op.operands.get(t.operand) for t in touches if t.space == "smem" and t.mode == mode]
    return [e for e in found if isinstance(e, Expr)]


def overwritten(walk: ValueWalk, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
    """The check of what an operation reads through views that share bytes; None where it reads no such view."""
    program = walk.plan.program
    both = shared(program)
    read, own = _operands(program, op), _operands(program, op, "w")  # what an operation writes before it reads it, as a scratch, is its own
    checks = [_check(walk, op, name, e.type.view) for name, e in op.operands.items() if isinstance(e, Expr) and isinstance(e.type, ViewT) and e.type.view in both and e in read and e not in own]
    if not checks:
        return None

    def step(m: Member, v: tuple[Any, ...]) -> None:
        for check in checks:
            check(m, v)

    return step


def _check(walk: ValueWalk, op: Op, operand: str, view: str) -> Callable[[Member, tuple[Any, ...]], None]:
    atoms, at, read = walk.plan.lookup(op, operand), walk.plan.code.ops[op.id].index[operand], _read(walk.plan.program)
    seen: set[tuple[int, Any]] = set()
    views = walk.plan.program.views
    mine = views[view].swizzle

    def check(m: Member, v: tuple[Any, ...]) -> None:
        key = m.number, v[at]
        other = next((c for a in atoms[v[at]] if (c := walk.cell(m, a)) is not None and c[0] != view), None)
        if other is None:
            seen.add(key)
        elif other[0] in views and views[other[0]].swizzle != mine:
            walk.clash("layout", op, m, v, 0, (view, 0, op.id), (other[0], 0, other[5]))
        elif key in seen and other[0] in read:
            walk.covered_over(op, m, v, view, other[5])

    return check


__all__ = ["overwritten", "shared"]

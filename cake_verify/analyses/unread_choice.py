"""A choice by column of which one side is never read.

`lm.where(lm.iota(x, axis=1) < n, a, b)` puts two values side by side for whoever reads them element by element. Where every element that
any run reads lies on one side of n, the other value is lost: n is off, or a read is missing.
"""

from __future__ import annotations

from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, Op
from cake_ir.record import record
from cake_verify.analyses import edits
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import spoken
from cake_verify.analyses.unread_parts import Written


@record()
class Lost:
    """The side of a choice that nobody reads: the selecting operation, its condition, the value, where it starts or ends, and what is read."""

    op: Op
    mask: Expr
    value: Expr
    view: str
    columns: tuple[int, ...]
    reader: Op


def lost_side(plan: Plan, op: Op, view: str, w: Written) -> Lost | None:
    """The side of the choice in what `op` writes that none of the reads takes."""
    x = op.operands.get("x")
    rects = {rect for f in w.fills for rect, _, _ in f.reads}
    if not isinstance(x, Expr) or not rects or any(rect[3] != 1 for rect in rects):
        return None
    node, made = _chosen(plan, op, x)
    if node is None or made is None or len({(f.place[2], f.place[3]) for f in w.fills}) != 1:
        return None
    mask = node.args[0]
    if mask.op != "lt" or mask.args[0].op != "iota" or mask.args[0].attrs.get("axis") != 1 or mask.args[1].op != "const":
        return None
    base = mask.args[0].args[1] if len(mask.args[0].args) > 1 else None
    if base is not None and base.attrs.get("value") != 0:
        return None
    first = w.fills[0].place[2]
    columns = tuple(sorted({rect[2] - first for rect in rects}))
    left = [c for c in columns if c < int(mask.args[1].attrs["value"])]  # type: ignore[call-overload]  # a number of columns
    if left and len(left) < len(columns):
        return None
    reader = plan.program.ops[max(number for f in w.fills for _, _, number in f.reads)]
    return Lost(made, mask, node.args[2 if left else 1], view, columns, reader)


def _chosen(plan: Plan, op: Op, x: Expr) -> tuple[Expr | None, Op | None]:
    """The choice that gives an operand its value, and the operation that it is made in."""
    if x.op == "where":
        return x, op
    if x.op != "var":
        return None, None
    role = plan.sites[op.id].role
    found = [s.op for s in sites(plan.program).results.get((role, str(x.attrs["name"])), ()) if s.op.id < op.id]
    value = found[-1].operands.get("value") if found else None
    return (value, found[-1]) if isinstance(value, Expr) and value.op == "where" else (None, None)


def lost_fault(plan: Plan, lost: Lost) -> Fault:
    """What to say of it, with the bound that would give both sides a reader."""
    bound = lost.mask.args[1]
    read = ", ".join(map(str, lost.columns))
    message = f"no read takes `{spoken(lost.value)}`: of `{lost.view}` only columns {read} are read, which lie on one side of {bound.attrs['value']}"
    fixes: tuple[Fix, ...] = ()
    if len(lost.columns) == 2 and bound.span.line:
        fixes = (edits.replace(bound.span, str(lost.columns[1])),)
    return Fault("S028", message, lost.mask.span if lost.mask.span.line else lost.op.span, ((lost.op.span, "chosen here"), (lost.reader.span, "read here")),
                 "choose where the reads divide, or read the other value too", fixes, {"role": plan.sites[lost.op.id].role, "view": lost.view})  # fmt: skip


__all__ = ["Lost", "lost_fault", "lost_side"]

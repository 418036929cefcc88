"""Halves of a pair's operand that are the same, told as a fault."""

from __future__ import annotations

from cake_ir.fault import Fault
from cake_ir.program import Op
from cake_ir.types import ViewT
from cake_verify.analyses import edits
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.report_labels import coordinate, place, span_at, text_of
from cake_verify.analyses.value_state import Clash


def halves(plan: Plan, c: Clash, facts: dict[str, object]) -> Fault:
    """Both CTAs of a pair bring the same rows of B."""
    assert c.one
    e = coordinate(plan, c.one)
    half = _height(c.op)
    text = text_of(e) if e is not None else None
    fixes = (edits.replace(e.span, f"{text} + lm.cta_rank() % 2 * {half}"),) if e is not None and text is not None and e.span.line else ()
    message = f"both CTAs of the pair bring {place(c.one)} as their half of `b`: the columns of the product come twice, and the next {half} are missing"
    return Fault("S034", message, span_at(plan, c.one), ((c.op.span, "multiplied here for both"),), f"the second CTA's half starts {half} later", fixes, facts | {"expected": half, "found": 0})


def _height(op: Op) -> int:
    """The rows of B that each CTA brings."""
    t = getattr(op.operands["b"], "type", None)
    return int(t.shape[0]) if isinstance(t, ViewT) else 0

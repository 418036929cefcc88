"""Block scales under a name: another way to read a region or a row vector, whose position is taken where the name is bound."""

from __future__ import annotations

from cake_ir.frontend.scope import Elaboration
from cake_ir.program import Expr
from cake_ir.span import Span
from cake_ir.types import FragT


def named_scales(el: Elaboration, e: Expr, span: Span) -> Expr:
    """The expression that a name for `e` stands for: what it reads that may change is bound to names of its own first."""
    x, first = e.args
    if isinstance(x.type, FragT) and x.op != "var":
        x = el.hoist("tmp", el.new_op("compute", {"value": x}, {}, x.type, span, {"value": x.span}), span)
    elif not isinstance(x.type, FragT) and x.op not in ("var", "tmem"):
        x = el.hoist("tmp", el.shallow(x, span), span)
    if first.op != "const":
        first = el.hoist("tmp", el.shallow(first, span), span)
    return Expr(e.op, (x, first), e.attrs, e.type, e.span)

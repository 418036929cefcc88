"""Masks that compare coordinates with uniform bounds: the uniform condition under which some element fails them.

An edge mask holds everywhere except in the last tile. Testing once whether it can fail keeps the select instructions out of full tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda.context import Context
from cake_backend.cuda.elementwise import resolve
from cake_backend.cuda.scalars import constant, factor, scalar
from cake_ir.program import Expr
from cake_ir.types import FragT, ScalarT


@dataclass(frozen=True, slots=True)
class Range:
    """Uniform lower and upper bounds (inclusive) of a coordinate, as C text; equal for a uniform value."""

    low: str
    high: str


def possible_failure(ctx: Context, mask: Expr) -> str | None:
    """C text of a uniform condition that is true wherever the mask is false for some element; None if it is not of that form."""
    mask = resolve(ctx, mask)
    if mask.op in ("bitand", "and"):
        parts = [possible_failure(ctx, a) for a in mask.args]
        return None if None in parts else " || ".join(str(p) for p in parts)
    if mask.op not in ("lt", "le", "gt", "ge"):
        return None
    a, b = (_range(ctx, x) for x in mask.args)
    if a is None or b is None or (a.low == a.high and b.low == b.high):
        return None
    if mask.op in ("gt", "ge"):
        a, b = b, a
    return f"{a.high} {'>=' if mask.op in ('lt', 'gt') else '>'} {b.low}"


def _range(ctx: Context, e: Expr) -> Range | None:
    if isinstance(e.type, ScalarT):
        text = factor(ctx, e)
        return Range(text, text)
    if e.op != "iota" or not isinstance(e.type, FragT):
        return None
    model = e.args[0].type
    if not isinstance(model, FragT) or model.form == "vec":
        return None
    extent = model.rows if e.attrs["axis"] == 0 else model.cols
    base = e.args[1] if len(e.args) > 1 else None
    start = 0 if base is None else constant(base)
    if start is not None:
        return Range(str(start), str(start + extent - 1))
    assert base is not None
    return Range(factor(ctx, base), f"{scalar(ctx, base)} + {extent - 1}")

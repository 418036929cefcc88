"""Masks of columns that hold for whole blocks of eight or more: one predicate a block, the same for all lanes, instead of one an element and lane."""

from __future__ import annotations

from math import gcd

from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.congruence import known_divisor
from cake_backend.cuda.context import Context
from cake_backend.cuda.fragments import tile_blocks
from cake_backend.cuda.positions import At
from cake_backend.cuda.scalars import scalar
from cake_ir.program import Expr
from cake_ir.types import ScalarT

BLOCK = 8
"""Columns of an accumulator that four neighbouring lanes hold together."""


def block_comparison(ctx: Context, e: Expr, at: At) -> str | None:
    """C text of `column < bound` or `column >= bound` where the bound falls between blocks of columns; None where it may not."""
    t = at.type
    if e.op not in ("lt", "ge") or t.form != "acc" or t.warps is not None or tile_blocks(t, ctx.role.warps) != 1:
        return None
    column, bound = e.args
    if column.op != "iota" or column.attrs["axis"] != 1 or not isinstance(bound.type, ScalarT):
        return None
    base = column.args[1] if len(column.args) > 1 else None
    block = gcd(128, known_divisor(ctx.program, bound), known_divisor(ctx.program, base) if base is not None else 0)
    if block < BLOCK:
        return None
    first = f"{block} * {operand(at.index.divided(4 * block // BLOCK))}"
    if base is not None and not (base.op == "const" and base.attrs["value"] == 0):
        first = f"{operand(scalar(ctx, base))} + {first}"
    return f"({first} {'<' if e.op == 'lt' else '>='} {operand(scalar(ctx, bound))})"

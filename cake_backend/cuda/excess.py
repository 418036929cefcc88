"""`lm.excess`, and what it allows to leave out: where a warp has none, its rows stay as they are.

A row seldom exceeds. A vote over the sign bits, two a logic operation, decides for the whole warp; the row maximum and its shuffles stand
behind a branch. An assignment that gives `x` back where the excess is zero (`x - e`, `x + e`, `x * lm.exp2(-e)`) stands behind the same branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cake_backend.cuda import reduce
from cake_backend.cuda.context import Context, Place
from cake_backend.cuda.elementwise import element, prepared, temporary
from cake_backend.cuda.fragments import elements, loop
from cake_backend.cuda.positions import At
from cake_backend.cuda.preamble import Device
from cake_backend.cuda.scalars import number
from cake_ir.program import Expr
from cake_ir.types import FragT

CHAINS = 4
"""Independent chains of logic operations over the signs: the latency of one would be the wait of the vote."""

OVER = Device(
    "over_zero",
    "DEVICE float over_zero(float highest, float margin) { return __float_as_int(highest) >= 0 && highest == highest ? highest + margin : 0.0f; }",
)


def excess_into(ctx: Context, target: Place, e: Expr) -> Place:
    """Write the excess of every row; the place comes back with the flag that says whether the warp has any."""
    x = prepared(ctx, e.args[0])
    x = x if x.op in ("var", "frag_cols") else temporary(ctx, x)
    t = x.type
    assert isinstance(t, FragT)
    signs, some = ctx.role.names.take(f"{target.name}_signs"), ctx.role.names.take(f"{target.name}_some")
    out = ctx.out
    out.line(f"u32 {signs}[{CHAINS}] = {{{', '.join(['0x80000000u'] * CHAINS)}}};")
    with out.unrolled("i_", elements(t, ctx.role.warps) // 2):
        a, b = (element(ctx, x, At(t, loop("i_", 2, k))) for k in (0, 1))
        out.line(f"{signs}[i_ % {CHAINS}] &= __float_as_uint({a}) & __float_as_uint({b});")
    together = " & ".join(f"{signs}[{i}]" for i in range(CHAINS))
    out.line(f"const bool {some} = __any_sync(0xffffffffu, (int)({together}) >= 0);")
    with out.unrolled("i_", target.count):
        out.line(f"{target.name}[i_] = 0.0f;")
    with out.block(f"if ({some})"):
        reduce.tile_rows(ctx, target, x, t, "max", "float")
        reduce.over_lanes(ctx, target, "max", "float", (1, 2))
        with out.unrolled("i_", target.count):
            out.line(f"{target.name}[i_] = {ctx.use(OVER)}({target.name}[i_], {number(e.attrs['margin'], 'float')});")
    return replace(target, some=some)


def flags(ctx: Context, target: object, e: Expr) -> tuple[str, ...]:
    """The flags, one of which must be set for `target = e` to change anything; none where that is not known."""
    found = {p.some: None for p in _flagged(ctx, e)}
    if not found:
        return ()
    left = _at_zero(ctx, e)
    same = isinstance(left, Expr) and left.op == "var" and ctx.role.env.get(str(left.attrs["name"])) is target
    return tuple(found) if same else ()


def _flagged(ctx: Context, e: Expr) -> Iterator[Place]:
    for x in e.parts():
        if (place := _place(ctx, x)) is not None:
            yield place


def _place(ctx: Context, e: Expr) -> Place | None:
    """The flagged place that a variable names."""
    if e.op != "var":
        return None
    bound = ctx.role.env.get(str(e.attrs["name"]))
    return bound if isinstance(bound, Place) and bound.some else None


def _at_zero(ctx: Context, e: Expr) -> Expr | int | None:
    """`e` where every flagged value is zero: an expression, 0 or 1; None if it is something else."""
    if _place(ctx, e) is not None:
        return 0
    if not any(True for _ in _flagged(ctx, e)):
        return e
    args = [_at_zero(ctx, a) for a in e.args]
    match e.op, args:
        case "neg", [0]:
            return 0
        case "exp2", [0]:
            return 1
        case ("add" | "sub"), [a, 0]:
            return a
        case ("add", [0, a]) | ("mul", [1, a]) | ("mul", [a, 1]):
            return a
    return None

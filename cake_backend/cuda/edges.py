"""Where a clipped access may leave its tensor along the axes that all its elements share."""

from __future__ import annotations

from cake_backend.cuda.arithmetic import operand
from cake_backend.cuda.context import Context
from cake_backend.cuda.globals import extent
from cake_backend.cuda.scalars import constant, scalar
from cake_ir.program import Expr
from cake_ir.types import FragT, TileT


def outer_tests(ctx: Context, tensor: str, coords: tuple[Expr, ...], first: int) -> list[str]:
    """Tests that coordinates from axis `first` on, one for all elements, lie inside; those of which that is known are left out."""
    out, p = [], ctx.program.tensors[tensor]
    for axis in range(first, len(coords)):
        c, dim = coords[axis], len(coords) - 1 - axis
        known = constant(c)
        if known is not None and p.extents and isinstance(p.extents[dim], int) and known < int(p.extents[dim]):
            continue
        if known == 0 or isinstance(c.type, FragT) or (p.extents and _tile_of(ctx, c) == p.extents[dim]):
            continue
        out.append(f"{operand(scalar(ctx, c))} < {extent(ctx, tensor, dim)}")
    return out


def _tile_of(ctx: Context, c: Expr) -> object:
    """The number of tiles (a scalar's name or an integer) that a tile's field stays below; None for anything else."""
    t = c.args[0].type if c.op == "field" else None
    s = ctx.program.schedulers.get(t.scheduler) if isinstance(t, TileT) else None
    if s is None or s.kind == "grouped" or s.cluster != (1, 1):
        return None
    tiles = s.tiles[s.names.index(str(c.attrs["name"]))]
    return tiles.attrs.get("name") if tiles.op == "param" else tiles.attrs.get("value") if tiles.op == "const" else None

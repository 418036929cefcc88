"""Tile loops: the linear number of a cluster tile and its decoding, printed from the one formula of `cake_ir.scheduler`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cake_backend.cuda.cluster import size, slice_index
from cake_backend.cuda.context import Context, Tile
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.scalars import CDIV, constant, factor, scalar
from cake_ir.program import Expr, Scheduler
from cake_ir.scheduler import Formula, formula

_SYMBOL = {"//": "/", "%": "%", "*": "*", "+": "+", "-": "-"}
_LEVEL = {"*": 2, "//": 2, "%": 2, "+": 1, "-": 1}


def text_of(expression: Formula, names: dict[str, str]) -> str:
    """A formula as C text; all values are non-negative."""
    return _text(expression, names)[0]


def _text(e: Formula, names: dict[str, str]) -> tuple[str, int]:
    if not isinstance(e, tuple):
        return (names.get(e, e) if isinstance(e, str) else str(e)), 3
    op, left, right = e
    a, b = _text(left, names), _text(right, names)
    if op == "min":
        return f"min({a[0]}, {b[0]})", 3
    level = _LEVEL[op]
    x = a[0] if a[1] >= level else f"({a[0]})"
    y = b[0] if b[1] > level else f"({b[0]})"
    return f"{x} {_SYMBOL[op]} {y}", level


def declare(ctx: Context, scheduler: Scheduler) -> None:
    """Constants of a scheduler: cluster tiles along each axis and in all."""
    if scheduler.kind not in ("static", "grid"):
        not_lowered(f'a scheduler of kind "{scheduler.kind}"', scheduler.span)
    extents = (*scheduler.cluster, *[1] * len(scheduler.tiles))
    counts = []
    for name, tiles, extent in zip(scheduler.names, scheduler.tiles, extents, strict=False):
        variable = ctx.names.take(f"{scheduler.name}_{name}")
        ctx.out.line(f"const int {variable} = {_count(ctx, tiles, extent)};")
        counts.append(variable)
    ctx.tile_counts[scheduler.name] = tuple(counts)
    total = ctx.names.take(f"{scheduler.name}_tiles")
    ctx.out.line(f"const int {total} = {' * '.join(counts)};")
    ctx.tile_totals[scheduler.name] = total


def _count(ctx: Context, tiles: Expr, extent: int) -> str:
    if extent == 1:
        return scalar(ctx, tiles)
    value = constant(tiles)
    return str(-(-value // extent)) if value is not None else f"{ctx.use(CDIV)}({scalar(ctx, tiles)}, {extent})"


@contextmanager
def loop(ctx: Context, scheduler: Scheduler, var: str) -> Iterator[Tile]:
    """The loop over this CTA's tiles; inside it the tile's fields are bound."""
    names, ctas = ctx.role.names, size(ctx)
    linear = names.take(var)
    first = "(int)blockIdx.x" if ctas == 1 else f"(int)blockIdx.x / {ctas}"
    total = ctx.tile_totals[scheduler.name]
    if scheduler.kind == "grid":
        ctx.out.line(f"const int {linear} = {first};")
        with ctx.out.block(f"if ({linear} < {total})"):
            yield _decode(ctx, scheduler, linear)
        return
    step = "(int)gridDim.x" if ctas == 1 else f"(int)gridDim.x / {ctas}"
    ctx.out.line("#pragma unroll 1")
    with ctx.out.block(f"for (int {linear} = {first}; {linear} < {total}; {linear} += {step})"):
        yield _decode(ctx, scheduler, linear)


def _decode(ctx: Context, scheduler: Scheduler, linear: str) -> Tile:
    known = {"l": linear, **{f"C{i}": n for i, n in enumerate(ctx.tile_counts[scheduler.name])}}
    fields: dict[str, str] = {}
    cx, cy = scheduler.cluster
    for target, expression in formula(scheduler.names, scheduler.raster, scheduler.swizzle):
        axis = target.removeprefix("c_")
        text = text_of(expression, known)
        if target.startswith("c_") and axis in scheduler.names:
            position = scheduler.names.index(axis)
            extent = (cx, cy)[position] if position < 2 else 1
            if extent > 1:
                rank = slice_index(ctx, position)
                text = f"({text}) * {extent} + (int){rank}"
            # The linear number itself is a field where there is only one axis.
            if text == linear:
                fields[axis] = linear
                continue
            variable = ctx.role.names.take(f"{linear}_{axis}")
            fields[axis] = variable
            known[target] = variable
        else:
            variable = ctx.role.names.take(f"{linear}_{target}")
            known[target] = variable
        ctx.out.line(f"const int {variable} = {text};")
    return Tile(linear, {name: fields[name] for name in scheduler.names})


__all__ = ["declare", "factor", "loop"]

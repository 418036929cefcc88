"""Tile loops: the linear number of a cluster tile and its decoding, printed from the one formula of `cake_ir.scheduler`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from cake_backend.cuda import work_counter
from cake_backend.cuda.cluster import size, slice_index
from cake_backend.cuda.context import Context, Tile
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.globals import extent, pointer
from cake_backend.cuda.scalars import CDIV, constant, factor, scalar
from cake_ir.program import Expr, For, Scheduler, statements
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
    if scheduler.kind == "grouped":
        _declare_groups(ctx, scheduler)
        return
    if scheduler.kind not in ("static", "grid", "counter"):
        not_lowered(f'a scheduler of kind "{scheduler.kind}"', scheduler.span)
    extents = (*scheduler.cluster, *[1] * len(scheduler.tiles))
    counts = []
    for name, tiles, width in zip(scheduler.names, scheduler.tiles, extents, strict=False):
        variable = ctx.names.take(f"{scheduler.name}_{name}")
        ctx.out.line(f"const int {variable} = {_count(ctx, tiles, width)};")
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
    step = "(int)gridDim.x" if ctas == 1 else f"(int)gridDim.x / {ctas}"
    if scheduler.kind == "grouped":
        with _apart(ctx), _grouped(ctx, scheduler, linear, first, step) as tile:
            yield tile
        return
    total = ctx.tile_totals[scheduler.name]
    if scheduler.kind == "grid":
        with _apart(ctx):
            ctx.out.line(f"const int {linear} = {first};")
            with ctx.out.block(f"if ({linear} < {total})"):
                yield _decode(ctx, scheduler, linear)
        return
    if scheduler.kind == "counter":
        with work_counter.loop(ctx, scheduler, linear, first, total):
            yield _decode(ctx, scheduler, linear)
        return
    advance = f"{linear} += {step}"
    start = f"int {linear} = {first}"
    if scheduler.deal == "snake":
        row = names.take(f"{linear}_row")
        start = f"int {row} = 0, {linear} = {first}"
        advance = f"++{row}, {linear} = {row} * ({step}) + ({row} & 1 ? {step} - 1 - {first} : {first})"
    ctx.out.line("#pragma unroll 1")
    with ctx.out.block(f"for ({start}; {linear} < {total}; {advance})"):
        yield _decode(ctx, scheduler, linear)


def _apart(ctx: Context) -> AbstractContextManager[None]:
    """A block of its own for the names in front of a loop, where a role has several loops over tiles."""
    bodies = [b.body for b in ctx.program.body if b.role == ctx.role.role.name]
    loops = [s for body in bodies for s in statements(body) if isinstance(s, For) and s.kind == "tiles"]
    return ctx.out.block("") if len(loops) > 1 else nullcontext()


# ------------------------------------------------------------------ groups whose sizes are data


def _declare_groups(ctx: Context, scheduler: Scheduler) -> None:
    """Constants of a grouped scheduler: cluster tiles along n, and the number of groups."""
    if ctx.program.launch.grid != "persistent" or scheduler.offsets is None or scheduler.block is None:
        not_lowered("a grouped scheduler without a persistent grid, offsets and block", scheduler.span)
    columns = ctx.names.take(f"{scheduler.name}_n")
    ctx.out.line(f"const int {columns} = {_count(ctx, scheduler.tiles[-1], scheduler.cluster[1])};")
    groups = ctx.names.take(f"{scheduler.name}_groups")
    ctx.out.line(f"const int {groups} = {extent(ctx, scheduler.offsets, 0)} - 1;")
    ctx.tile_counts[scheduler.name] = (columns,)
    ctx.tile_totals[scheduler.name] = groups


@contextmanager
def _grouped(ctx: Context, scheduler: Scheduler, linear: str, first: str, step: str) -> Iterator[Tile]:
    """Groups one after the other: the group of the next tile is searched from that of the tile before, as the numbers only grow."""
    names, out = ctx.role.names, ctx.out
    groups, (columns,) = ctx.tile_totals[scheduler.name], ctx.tile_counts[scheduler.name]
    offsets = pointer(ctx, str(scheduler.offsets))
    group, base, begin, end, rows = (names.take(f"{linear}_{n}") for n in ("group", "first", "begin", "end", "counts"))
    cx = scheduler.cluster[0]
    device = ctx.use(CDIV)
    tiles = f"{device}({end} - {begin}, {scheduler.block})"
    count = tiles if cx == 1 else f"{device}({tiles}, {cx})"
    out.line(f"int {group} = 0, {base} = 0, {begin} = {offsets}[0], {end} = {groups} > 0 ? {offsets}[1] : {begin}, {rows} = {count};")
    out.line("#pragma unroll 1")
    with out.block(f"for (int {linear} = {first}; ; {linear} += {step})"):
        out.line("#pragma unroll 1")
        with out.block(f"while ({group} < {groups} && {linear} - {base} >= {rows} * {columns})"):
            out.line(f"{base} += {rows} * {columns};")
            out.line(f"if (++{group} == {groups}) break;")
            out.line(f"{begin} = {end};")
            out.line(f"{end} = {offsets}[{group} + 1];")
            out.line(f"{rows} = {count};")
        out.line(f"if ({group} >= {groups}) break;")
        inside = names.take(f"{linear}_inside")
        out.line(f"const int {inside} = {linear} - {base};")
        fields = _axes(ctx, scheduler, inside, (rows, columns), ("m", "n"), linear)
        row0, valid = names.take(f"{linear}_row0"), names.take(f"{linear}_rows")
        out.line(f"const int {row0} = {begin} + {fields['m']} * {scheduler.block};")
        out.line(f"const int {valid} = max(0, min({scheduler.block}, {end} - {row0}));")
        yield Tile(linear, {"group": group, **fields, "row0": row0, "rows": valid})


def _decode(ctx: Context, scheduler: Scheduler, linear: str) -> Tile:
    return Tile(linear, _axes(ctx, scheduler, linear, ctx.tile_counts[scheduler.name], scheduler.names, linear))


def _axes(ctx: Context, scheduler: Scheduler, number: str, counts: tuple[str, ...], names: tuple[str, ...], prefix: str) -> dict[str, str]:
    """Declare the CTA's tile coordinates by axis name, decoded from the number of its cluster tile."""
    known = {"l": number, **{f"C{i}": n for i, n in enumerate(counts)}}
    fields: dict[str, str] = {}
    cx, cy = scheduler.cluster
    for target, expression in formula(names, scheduler.raster, scheduler.swizzle):
        axis = target.removeprefix("c_")
        text = text_of(expression, known)
        if target.startswith("c_") and axis in names:
            position = names.index(axis)
            extent = (cx, cy)[position] if position < 2 else 1
            if extent > 1:
                rank = slice_index(ctx, position)
                text = f"({text}) * {extent} + (int){rank}"
            # The linear number itself is a field where there is only one axis.
            if text == number:
                fields[axis] = number
                continue
            variable = ctx.role.names.take(f"{prefix}_{axis}")
            fields[axis] = variable
            known[target] = variable
        else:
            variable = ctx.role.names.take(f"{prefix}_{target}")
            known[target] = variable
        ctx.out.line(f"const int {variable} = {text};")
    return {name: fields[name] for name in names}


__all__ = ["declare", "factor", "loop"]

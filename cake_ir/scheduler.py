"""Which tile comes when: the one definition of every tile order, for walk, simulator, launcher and generated code.

The unit of scheduling is the *cluster tile*: ``cluster`` neighbouring CTA tiles along the first two axes (1 x 1 without
clusters). Counts are rounded up to whole clusters, so a tile at the edge may lie outside the tensors; loads of it are
filled and stores clipped. A linear number ``l`` runs from 0 to the number of cluster tiles and is decoded as follows, with
``C0, C1, ..`` the cluster-tile counts of the axes in declaration order:

* default: the first axis fastest. ``c0 = l % C0``, ``c1 = l / C0 % C1``, ..
* ``raster="x"`` with ``swizzle=g``: groups of g along axis x, x fastest inside a group, then the first other axis, then
  the next group, then the remaining axes. The last group may be narrower. ``swizzle`` without ``raster`` takes the first
  axis; ``raster`` without ``swizzle`` makes that axis fastest over its whole length.
* ``raster="heavy_first"``: the first axis slowest and descending, the others as in the default.

The CTA with rank r of a cluster works on tile ``c0 * cx + r % cx``, ``c1 * cy + r / cx``. Who gets which l depends on the
kind: ``grid`` cluster i takes l = i; ``static`` and ``grouped`` cluster i of n takes i, i + n, i + 2n, ..; ``counter`` and
``clc`` hand out the next free l. With ``deal="snake"`` a static scheduler turns round after each n: cluster i takes i, then
2n - 1 - i, then 2n + i, and so on, so that who gets the first of one round gets the last of the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise, product
from math import prod
from typing import Literal, TypeAlias

from cake_ir.record import record

Kind = Literal["grid", "static", "grouped", "counter", "clc"]

KINDS: tuple[Kind, ...] = ("grid", "static", "grouped", "counter", "clc")


@record()
class TileOrder:
    """A tile space with its order: CTA-tile counts by axis, and how cluster tiles are numbered."""

    tiles: tuple[int, ...]
    names: tuple[str, ...] = ("m", "n")
    raster: str | None = None
    swizzle: int = 1
    cluster: tuple[int, int] = (1, 1)
    deal: str | None = None


def order_problem(names: tuple[str, ...], raster: str | None, swizzle: int, cluster: tuple[int, int]) -> str | None:
    """Why no such order exists, as one lower-case sentence; ``None`` when it does."""
    if len(set(names)) != len(names):
        return f"the axis names {', '.join(names)} repeat"
    if swizzle < 1:
        return f"swizzle={swizzle} must be at least 1"
    if raster == "heavy_first":
        if swizzle > 1:
            return "heavy_first walks the first axis from its end, it has no groups to swizzle"
    elif raster is not None and raster not in names:
        return f'raster="{raster}" is neither "heavy_first" nor one of the axes {", ".join(names)}'
    if min(cluster) < 1:
        return f"cluster={cluster} must be at least 1 along both axes"
    if cluster[1] > 1 and len(names) < 2:
        return f"cluster={cluster} spans a second axis, the scheduler has only one: {', '.join(names)}"
    return None


def _ceil(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


def cluster_counts(order: TileOrder) -> tuple[int, ...]:
    """Cluster tiles along each axis: CTA tiles divided by the cluster's extent, rounded up."""
    if order.cluster == (1, 1):
        return tuple(order.tiles)
    extents = (*order.cluster, *(1 for _ in order.tiles))
    return tuple(_ceil(count, extent) for count, extent in zip(order.tiles, extents, strict=False))


def cluster_total(order: TileOrder) -> int:
    """Cluster tiles in all: how far the linear number runs."""
    return prod(cluster_counts(order))


def cluster_size(order: TileOrder) -> int:
    """CTAs in a cluster."""
    return order.cluster[0] * order.cluster[1]


def _axes(count: int, names: tuple[str, ...], raster: str | None) -> tuple[int, ...]:
    """Axis indices from fastest to slowest, groups not considered."""
    axes = tuple(range(count))
    if raster is None or count < 2:
        return axes
    if raster == "heavy_first":
        return (*axes[1:], axes[0])
    first = names.index(raster)
    return (first, *[a for a in axes if a != first])


def decode(
    linear: int, counts: Sequence[int], raster: str | None = None, swizzle: int = 1, names: tuple[str, ...] = ("m", "n")
) -> tuple[int, ...]:
    """The cluster tile with number ``linear`` among ``counts``, one coordinate an axis in declaration order."""
    axes = _axes(len(counts), names, raster)
    out = [0] * len(counts)
    rest = linear
    if swizzle > 1 and len(counts) > 1:
        a, b = axes[0], axes[1]
        rest, inner = divmod(linear, counts[a] * counts[b])
        group, within = divmod(inner, swizzle * counts[b])
        first = group * swizzle
        width = min(swizzle, counts[a] - first)
        out[a], out[b] = first + within % width, within // width
        axes = axes[2:]
    for axis in axes[:-1]:
        rest, out[axis] = divmod(rest, counts[axis])
    if axes:
        out[axes[-1]] = rest
    if raster == "heavy_first":
        out[0] = counts[0] - 1 - out[0]
    return tuple(out)


def rank_offset(rank: int, cluster: tuple[int, int]) -> tuple[int, int]:
    """Where CTA ``rank`` sits in its cluster, along the first and the second axis: the first runs fastest."""
    return rank % cluster[0], rank // cluster[0]


def cta_tile(order: TileOrder, linear: int, rank: int = 0) -> tuple[int, ...]:
    """The CTA tile of ``rank`` in cluster tile ``linear``. At the edge it may lie beyond ``order.tiles``."""
    return _in_cluster(decode(linear, cluster_counts(order), order.raster, order.swizzle, order.names), order.cluster, rank)


def _in_cluster(at: tuple[int, ...], cluster: tuple[int, int], rank: int) -> tuple[int, ...]:
    """The CTA tile of a rank of a cluster tile."""
    if cluster == (1, 1):
        return at
    inside = (*rank_offset(rank, cluster), *[0] * len(at))
    extent = (*cluster, *[1] * len(at))
    return tuple(c * extent[i] + inside[i] for i, c in enumerate(at))


def every_tile(order: TileOrder) -> Iterator[tuple[int, ...]]:
    """All CTA tiles, cluster tile after cluster tile."""
    counts, size = cluster_counts(order), cluster_size(order)
    plain = order.raster is None and order.swizzle == 1  # the first axis fastest
    numbered = product(*map(range, reversed(counts))) if plain else (decode(linear, counts, order.raster, order.swizzle, order.names) for linear in range(prod(counts)))
    for at in numbered:
        if plain:
            at = at[::-1]
        if size == 1:
            yield at
            continue
        for rank in range(size):
            yield _in_cluster(at, order.cluster, rank)


def cta_tiles(order: TileOrder, kind: Kind, cluster_id: int, clusters: int, rank: int = 0) -> Iterator[tuple[int, ...]]:
    """The tiles that CTA ``rank`` of cluster ``cluster_id`` of ``clusters`` works on, in order.

    For ``counter`` and ``clc``, where the hardware decides, this is the round-robin hand-out: one possible run.
    """
    counts = cluster_counts(order)
    total, k = prod(counts), 0
    step = _round(kind, clusters, total)
    while (linear := _nth(order, step, cluster_id, k)) < total:
        yield _in_cluster(decode(linear, counts, order.raster, order.swizzle, order.names), order.cluster, rank)
        k += 1


def dealt(order: TileOrder, kind: Kind | str, cluster_id: int, clusters: int, k: int) -> int:
    """The number of a cluster's k-th tile; from the cluster total on there is none, nor behind it."""
    return _nth(order, _round(kind, clusters, cluster_total(order)), cluster_id, k)


def _round(kind: Kind | str, clusters: int, total: int) -> int:
    """Tiles that are handed out before a cluster gets its next one."""
    return max(1, total if kind == "grid" else clusters)


def _nth(order: TileOrder, step: int, cluster_id: int, k: int) -> int:
    return k * step + (step - 1 - cluster_id if order.deal == "snake" and k % 2 else cluster_id)


def launch_ctas(order_total: int, size: int, persistent: bool, resident_clusters: int) -> int:
    """CTAs to launch: all cluster tiles, or at most the clusters that fit on the device at once when persistent."""
    clusters = min(resident_clusters, order_total) if persistent else order_total
    return max(1, clusters) * size


# --- groups whose sizes are data --------------------------------------------------------------------------------------


@record()
class GroupTile:
    """One tile of a grouped scheduler: ``m`` counts tiles inside ``group``, ``row0`` is its first row in the tensor that
    holds all groups, ``rows`` how many of its rows belong to the group (1 to the block; 0 for a tile that only fills up a
    cluster)."""

    group: int
    m: int
    n: int
    row0: int
    rows: int


def group_totals(offsets: Sequence[int], block: int, n_tiles: int, cluster: tuple[int, int] = (1, 1)) -> list[int]:
    """Cluster tiles of each group: ``offsets`` are the groups' first rows and, last, the end of the last one."""
    return [
        _ceil(_ceil(end - begin, block), cluster[0]) * _ceil(n_tiles, cluster[1])
        for begin, end in pairwise(offsets)
    ]


def decode_group(
    linear: int, offsets: Sequence[int], block: int, n_tiles: int, raster: str | None = None, swizzle: int = 1,
    cluster: tuple[int, int] = (1, 1), rank: int = 0,
) -> GroupTile | None:  # fmt: skip
    """The tile with number ``linear``: groups one after the other, each in the order of ``decode`` over (m, n).

    ``None`` past the last tile. Empty groups have no tiles.
    """
    ends = list(accumulate(group_totals(offsets, block, n_tiles, cluster)))
    if not ends or linear >= ends[-1]:
        return None
    group = bisect_right(ends, linear)
    inside = linear - (ends[group - 1] if group else 0)
    rows = offsets[group + 1] - offsets[group]
    counts = (_ceil(_ceil(rows, block), cluster[0]), _ceil(n_tiles, cluster[1]))
    cm, cn = decode(inside, counts, raster, swizzle)
    rm, rn = rank_offset(rank, cluster)
    m, n = cm * cluster[0] + rm, cn * cluster[1] + rn
    return GroupTile(group, m, n, offsets[group] + m * block, max(0, min(block, rows - m * block)))


# --- the same formula as data, for printers ---------------------------------------------------------------------------

# An expression is a constant, a name, or (operator, left, right) with // % * + - min over non-negative integers.
Formula: TypeAlias = "int | str | tuple[str, Formula, Formula]"


@lru_cache(maxsize=256)
def formula(
    names: tuple[str, ...], raster: str | None = None, swizzle: int = 1, linear: str = "l", count: str = "C"
) -> tuple[tuple[str, Formula], ...]:
    """``decode`` as assignments in order: temporaries first, then one ``c_<axis>`` an axis.

    The linear number is called ``linear`` and the cluster-tile count of axis i ``<count><i>``. Printing these is how
    generated code gets the same order as every other reader.
    """
    axes = _axes(len(names), names, raster)
    c = [f"{count}{i}" for i in range(len(names))]
    out: list[tuple[str, Formula]] = []
    rest: Formula = linear
    if swizzle > 1 and len(names) > 1:
        a, b = axes[0], axes[1]
        inner: Formula = linear
        if len(names) > 2:
            out.append(("plane", ("*", c[a], c[b])))
            out.append(("inner", ("%", linear, "plane")))
            rest, inner = ("//", linear, "plane"), "inner"
        out.append(("span", ("*", swizzle, c[b])))
        out.append(("first", ("*", ("//", inner, "span"), swizzle)))
        out.append(("width", ("min", swizzle, ("-", c[a], "first"))))
        out.append(("within", ("%", inner, "span")))
        out.append((f"c_{names[a]}", ("+", "first", ("%", "within", "width"))))
        out.append((f"c_{names[b]}", ("//", "within", "width")))
        axes = axes[2:]
    for axis in axes[:-1]:
        out.append((f"c_{names[axis]}", ("%", rest, c[axis])))
        rest = ("//", rest, c[axis])
    if axes:
        last: Formula = rest
        if raster == "heavy_first" and axes[-1] == 0:
            last = ("-", ("-", c[0], 1), rest)
        out.append((f"c_{names[axes[-1]]}", last))
    return tuple(out)


def infix(expression: Formula, divide: str = "/") -> str:
    """The expression as text with full parentheses; ``divide`` is the integer division of the language printed."""
    if not isinstance(expression, tuple):
        return str(expression)
    op, left, right = expression
    if op == "min":
        return f"min({infix(left, divide)}, {infix(right, divide)})"
    return f"({infix(left, divide)} {divide if op == '//' else op} {infix(right, divide)})"

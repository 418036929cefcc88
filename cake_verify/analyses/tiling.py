"""What a setting gives to the walk: the tiles of every CTA, and what `lm.ld` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from cake_ir.program import Program, Scheduler
from cake_ir.scheduler import TileOrder, cta_tiles, decode_group
from cake_verify.analyses import trips

if TYPE_CHECKING:
    from cake_verify.analyses.settings import Setting


def reader(lengths: dict[str, tuple[int, ...]], prefix: frozenset[str]) -> Callable[[str, int], int]:
    """What `lm.ld` reads: offsets that grow by the lengths, the lengths themselves, or for other tensors the index."""

    def value(tensor: str, i: int) -> int:
        pattern = lengths.get(tensor)
        if tensor in prefix:
            pattern = pattern or (3,)
            whole, rest = divmod(max(i, 0), len(pattern))
            return whole * sum(pattern) + sum(pattern[:rest])
        if pattern:
            return pattern[i % len(pattern)]
        return i

    return value


def order_of(s: Scheduler, counts: tuple[int, ...]) -> TileOrder:
    """The tile space of a scheduler with its counts evaluated."""
    return TileOrder(counts, s.names, s.raster, s.swizzle, s.cluster, s.deal)


def tile_source(program: Program, setting: Setting, prefix: frozenset[str]) -> Callable[[str, int], Iterable[tuple[int, ...]]]:
    """The tiles that each CTA of the walked cluster gets from each scheduler."""
    read = reader(setting.lengths, prefix)
    env: dict[str, Any] = {**setting.args, "ld": read, "tile": {}}
    known: dict[tuple[str, int], list[tuple[int, ...]]] = {}  # all members of a CTA get the same tiles

    def tiles(name: str, rank: int) -> Iterable[tuple[int, ...]]:
        found = known.get((name, rank))
        if found is None:
            found = known[name, rank] = handed_out(name, rank)
        return found

    def handed_out(name: str, rank: int) -> list[tuple[int, ...]]:
        s = program.schedulers[name]
        counts = trips.tile_counts(program, name)(env)
        if s.kind == "grouped":
            return _grouped(s, counts[-1], setting, read, rank)
        return list(cta_tiles(order_of(s, counts), s.kind, setting.cluster, setting.clusters, rank))  # type: ignore[arg-type]  # kinds are checked

    return tiles


def _grouped(s: Scheduler, n_tiles: int, setting: Setting, read: Callable[[str, int], int], rank: int) -> list[tuple[int, ...]]:
    sizes = [read(str(s.offsets), i + 1) - read(str(s.offsets), i) for i in range(4)]
    offsets = [0, *accumulate(sizes)]
    out: list[tuple[int, ...]] = []
    linear = setting.cluster
    while (tile := decode_group(linear, offsets, s.block or 1, n_tiles, s.raster, s.swizzle, s.cluster, rank)) is not None:
        out.append((tile.group, tile.m, tile.n, tile.row0, tile.rows))
        linear += setting.clusters
    return out

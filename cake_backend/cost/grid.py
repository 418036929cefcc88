"""From one SM to the grid: how many blocks run at once, who works on which tiles, and how long the slowest slot takes."""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cake_backend.cost.scalars import NoValue, value
from cake_ir.placement import tile_order
from cake_ir.program import For, Program, Stmt, statements
from cake_ir.scheduler import TileOrder, cluster_size, cluster_total, cta_tile, dealt
from cake_ir.targets import Device
from cake_ir.targets import target as target_named

_JITTER = 0.03  # relative spread of the durations of equal blocks
_LISTED = 20_000
MOST_TILES = 1 << 40
"""More tiles than any launch has."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The launch on one board: CTA tiles in all, clusters launched and how many run at once, blocks an SM holds, tile orders.

    `limit` names what cuts the blocks an SM holds below what the schedule asks for, empty where nothing does.
    """

    tiles: int
    size: int
    clusters: int
    slots: int
    resident: int
    persistent: bool
    orders: dict[str, TileOrder]
    limit: str

    @property
    def rounds(self) -> float:
        """Tiles of the slowest slot where slots take turns, or waves of blocks."""
        per_slot = -(-(self.tiles // self.size) // max(1, min(self.slots, self.clusters)))
        return float(per_slot)

    @property
    def balance(self) -> float:
        """Mean over maximum of the tiles by slot, idle slots counted: 1 where all SMs work to the end."""
        return min(1.0, self.tiles / self.size / max(1, self.slots) / max(1.0, self.rounds))


def lay_out(program: Program, args: Mapping[str, Any], extents: Mapping[tuple[str, int], int], board: Device, registers: int | None) -> Grid:
    """The grid for these arguments. Raises `NoValue` where a tile count is not known."""
    used = [s.scheduler for block in program.body for s in statements(block.body) if _is_tiles(s) and isinstance(s, For)]
    orders = {}
    for name in dict.fromkeys(n for n in used if n):
        scheduler = program.schedulers[name]
        if scheduler.kind == "grouped":
            raise NoValue(f"the groups of `{name}` are data")
        orders[name] = tile_order(scheduler, [max(0, int(value(e, program, args, extents))) for e in scheduler.tiles])
    first = next(iter(orders.values()), TileOrder((1,), ("x",), cluster=program.launch.cluster))
    size = max(cluster_size(first), program.launch.cluster[0] * program.launch.cluster[1])
    total = max(1, cluster_total(first))
    if total > MOST_TILES:
        raise NoValue(f"{total:,} tiles are no grid")
    resident, limit = _resident(program, registers, board.target)
    slots = max(1, board.clusters_at_once(size, resident))
    persistent = program.launch.grid == "persistent"
    return Grid(total * size, size, min(total, slots) if persistent else total, slots, resident, persistent, orders, limit)


def _is_tiles(s: Stmt) -> bool:
    return isinstance(s, For) and s.kind == "tiles"


def _resident(program: Program, registers: int | None, target: str) -> tuple[int, str]:
    asked = max(1, program.launch.ctas_per_sm)
    t = target_named(target)
    smem = sum(pool.nbytes for pool in program.pools.values())
    regs = registers or t.entry_registers(program.threads, asked)
    fits = t.blocks_that_fit(smem, program.threads, regs)
    if fits >= asked:
        return asked, ""
    without = {"shared memory": t.blocks_that_fit(0, program.threads, regs), "registers": t.blocks_that_fit(smem, program.threads, 24)}
    limit = max(without, key=lambda name: without[name])
    return max(1, fits), limit


class OwnTiles(Sequence[tuple[int, ...]]):
    """The tiles of one block, in order, made as they are asked for: a launch may have more of them than fit in memory."""

    __slots__ = ("first", "length", "order", "rank", "step")

    def __init__(self, order: TileOrder, kind: str, cluster: int, clusters: int, rank: int) -> None:
        total = cluster_total(order)
        self.order, self.rank, self.first = order, rank, cluster
        self.step = max(1, total if kind == "grid" else clusters)
        whole, rest = divmod(total, self.step)
        self.length = whole + (dealt(order, "static", cluster, self.step, whole) - whole * self.step < rest)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(self.length))]
        if not 0 <= i < self.length:
            raise IndexError(i)
        return cta_tile(self.order, dealt(self.order, "static", self.first, self.step, i), self.rank)


def own_tiles(grid: Grid, program: Program, scheduler: str, cluster: int = 0, rank: int = 0) -> OwnTiles:
    """The tiles of one block; for schedulers that hand out at run time, those of the round-robin hand-out."""
    return OwnTiles(grid.orders[scheduler], program.schedulers[scheduler].kind, cluster, grid.clusters, rank)


def makespan(duration: float, count: int, slots: int) -> float:
    """Expected end of `count` blocks of equal duration with a little jitter, handed out one by one to `slots`.

    A few long blocks make whole waves; many short ones even out.
    """
    if count <= slots:
        return duration
    if count > _LISTED:
        return duration * (count / slots + 0.5)
    draw = random.Random(count)
    ends = [0.0] * slots
    for _ in range(count):
        heapq.heapreplace(ends, ends[0] + duration * max(0.5, draw.gauss(1.0, _JITTER)))
    return max(ends)

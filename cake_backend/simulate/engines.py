"""Asynchronous engines: work that a warp has issued and that completes when the policy says so.

A piece of work takes one or two steps (a bulk store first reads shared memory, then writes global memory). While it may still touch
shared memory its granules are guarded, so that any other access to them is a reported hazard, and what it will write is poisoned. Matrix
multiplications of one unit run in the order of their issue; everything else may complete in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cake_backend.simulate.barriers import Gate, MBarrier
from cake_backend.simulate.memory import Cells, Pool
from cake_ir.program import Op

if TYPE_CHECKING:
    from cake_backend.simulate.state import Cta, Warp

KINDS = ("tma", "store", "mma", "cp_async", "tmem", "upstream")
"""Kinds of completion that a policy can delay."""


@dataclass(slots=True, eq=False)
class Work:
    """One asynchronous operation in flight. `run` performs its next step; `guards` are the bytes it may still read (r) or write (w)."""

    kind: str
    op: Op
    warp: Warp
    run: Callable[[Work], None]
    guards: list[tuple[Pool, Cells, str]] = field(default_factory=list)
    steps: int = 1
    done: int = 0
    rank: float = 0.0
    last: int = 0
    gate: Gate = field(default_factory=Gate)

    @property
    def complete(self) -> bool:
        """Whether all its steps have been made."""
        return self.done >= self.steps

    @property
    def ready(self) -> bool:
        """Whether it may make its next step now."""
        return not self.complete

    def guard(self, pool: Pool, cells: Cells, mode: str) -> None:
        """Guard bytes until `release`."""
        counter = pool.writing if mode == "w" else pool.reading
        counter[cells.granules] += 1
        self.guards.append((pool, cells, mode))

    def release(self) -> None:
        """The bytes are free again."""
        for pool, cells, mode in self.guards:
            counter = pool.writing if mode == "w" else pool.reading
            counter[cells.granules] -= 1
        self.guards.clear()


@dataclass(slots=True, eq=False)
class Transfer(Work):
    """A copy into shared memory that completes by bytes on one or several barriers."""

    barriers: list[tuple[MBarrier, int]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class BulkStore(Work):
    """A copy out of shared memory: step 1 reads it, step 2 writes global memory. `raw` is what it has read."""

    raw: Any = None

    @property
    def read(self) -> bool:
        """Whether its source has been read."""
        return self.done >= 1


@dataclass(slots=True, eq=False)
class CpAsync(Work):
    """One warp's part of a `cp_async`."""


@dataclass(slots=True, eq=False)
class Arrival(Work):
    """An arrival that waits for copies of its thread to land."""

    before: list[CpAsync] = field(default_factory=list)

    @property
    def ready(self) -> bool:
        return not self.complete and all(c.complete for c in self.before)


@dataclass(slots=True, eq=False)
class Group:
    """One MMA group of a unit: issued by its warps one by one, executed as a whole once all have, in order.

    By warp: `vals` of the event, `values` of a register operand that is no place, `uses` of places (0 written, 1 read). `columns` of tensor
    memory are read as operands, or written by a `copy`.
    """

    op: Op
    unit: MmaUnit
    execute: Callable[[Group], None]
    vals: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    warps: dict[int, Warp] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)
    uses: dict[int, list[tuple[tuple[str, int], int]]] = field(default_factory=dict)
    columns: frozenset[int] = frozenset()
    copy: bool = False
    done: bool = False
    work: Work | None = None

    @property
    def executed(self) -> bool:
        return self.work is not None and self.work.complete


@dataclass(slots=True, eq=False)
class MmaUnit(Gate):
    """The asynchronous tensor core of one warpgroup (or, for tcgen05, of one issuing thread): groups in order of issue, the first `executed` of
    which are over."""

    size: int = 4
    groups: list[Group] = field(default_factory=list)
    executed: int = 0


@dataclass(slots=True, eq=False)
class MmaWork(Work):
    """Execution of one group; ready when every earlier group of its unit has been executed."""

    group: Group | None = None

    @property
    def ready(self) -> bool:
        g = self.group
        return g is not None and not self.complete and g.unit.groups[g.unit.executed] is g


@dataclass(slots=True, eq=False)
class CopyWork(MmaWork):
    """A copy to tensor memory: its thread's later products wait for it, it waits for earlier copies and for those earlier products alone that
    read what it overwrites. Results of products are written in no order with it."""

    @property
    def ready(self) -> bool:
        g = self.group
        if g is None or self.complete:
            return False
        unit = g.unit
        for earlier in unit.groups[unit.executed :]:
            if earlier is g:
                return True
            if not earlier.done and (earlier.copy or not earlier.columns.isdisjoint(g.columns)):
                return False
        return True


def unfinished(cta: Cta) -> list[Work]:
    """Work of a CTA that has not completed."""
    return [w for w in cta.work if not w.complete]

"""The machine's parts: CTAs with their memory and barriers, warps with their registers and queues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cake_backend.simulate.barriers import MBarrier, NamedBarrier, RegisterPool
from cake_backend.simulate.memory import Pool
from cake_ir.program import Role
from cake_ir.walk.agents import Agent

if TYPE_CHECKING:
    from cake_backend.simulate.engines import BulkStore, CpAsync, MmaUnit, Work
    from cake_backend.simulate.floats import Array


@dataclass(slots=True, eq=False)
class Cluster:
    """CTAs that share barriers and multicast; `by_rank` finds one by its linear rank, the first axis fastest."""

    number: int
    by_rank: dict[int, Cta] = field(default_factory=dict)
    barrier: NamedBarrier = field(default_factory=NamedBarrier)
    running: int = 0


@dataclass(slots=True, eq=False)
class Cta:
    """One CTA: its number in the grid, its rank and (x, y) place in the cluster, and everything that is its own."""

    number: int
    rank: int
    place: tuple[int, int]
    cluster: Cluster
    pools: dict[str, Pool] = field(default_factory=dict)
    barriers: dict[str, list[MBarrier]] = field(default_factory=dict)
    named: dict[tuple[str, int], NamedBarrier] = field(default_factory=dict)
    registers: list[RegisterPool] = field(default_factory=list)
    units: dict[tuple[str, int, int], MmaUnit] = field(default_factory=dict)
    tmem: Any = None
    work: list[Work] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Warp:
    """One warp of a role member: an agent of the walk, its registers, and what it has in flight.

    `number` counts from the CTA's first warp, `warp` from the member's. `regs` holds the places by name; `busy` counts, a place, the
    unretired matrix multiplications that write it (`w`) or read it (`r`); `owing` the bytes that a phase's copies
    still have to bring after they were expected; `held_back` the true value of an accumulator in flight, whose
    place shows NaN meanwhile.
    """

    agent: Agent
    cta: Cta
    role: Role
    member: int
    warp: int
    number: int
    elected: bool
    regs: dict[str, Any] = field(default_factory=dict)
    unwritten: set[str] = field(default_factory=set)
    busy: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    held_back: dict[tuple[str, int], Array] = field(default_factory=dict)
    unit: MmaUnit | None = None
    issued: int = 0
    retired: int = 0
    open_copies: list[CpAsync] = field(default_factory=list)
    copy_groups: list[list[CpAsync]] = field(default_factory=list)
    stores: list[BulkStore] = field(default_factory=list)
    owing: dict[int, int] = field(default_factory=dict)
    tensor_moves: dict[str, list[Any]] = field(default_factory=dict)
    at_step: int = 0
    token: int = -1
    ready: bool = True
    waits_for: tuple[str, Any] | None = None
    rank: float = 0.0
    last: int = 0
    ended: bool = False

    @property
    def name(self) -> str:
        """How messages call it: role, member and warp, and the CTA where there are several."""
        member = f"[{self.member}]" if self.role.members > 1 else ""
        return f"{self.role.name}{member} warp {self.warp}"

    @property
    def width(self) -> int:
        """Warps of the member."""
        return self.role.member_warps

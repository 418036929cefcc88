"""What the happens-before machine knows: members, CTAs, barriers on phase numbers, and knowledge as sets of bits in an int.

Every access epoch of a member, every asynchronous completion and every phase is one bit. A member has three masks: `K`, what each of its
lanes knows to have happened; `L`, what its own lanes did since they last met, which another lane need not have seen; `E`, what only the
elected thread has observed. `P` holds the ordinary writes that
a proxy fence of their writer has made visible to the async proxy, `F` own writes whose fence other lanes may still have to reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cake_ir.walk.code import Body, Event


class Found(Exception):
    """A fault of the schedule, met while walking: the rule's code and what the report needs."""

    def __init__(self, code: str, **data: Any) -> None:
        super().__init__(code)
        self.code, self.data = code, data
        self.member: Member | None = None


class Undecided(Exception):
    """The walk cannot go on for a reason that is not the schedule's fault."""

    def __init__(self, why: str, op: int | None = None, role: str = "") -> None:
        super().__init__(why)
        self.why, self.op, self.role = why, op, role


Phase = tuple[int, int, int, int]
"""A complete phase: what its contributors knew, what of that was visible to the async proxy, its own bit, its contributions."""


class Bar:
    """One mbarrier object: `n` phases are complete, the open one misses `pend` arrivals and `tx` bytes.

    `ak`/`ap` gather knowledge, `cm` the contributions of the open phase; `cb` is the open phase's own bit (0 until needed); `phases` are
    the complete ones, `token` the own bit of the last of them; `wr` holds the wait-returns on the last of them; `waited` is how many phases somebody has waited for; `loaded` marks phases with loads;
    `arm` is what a phase expects of peers' sends, announced behind the wait for the one before.
    """

    __slots__ = ("ak", "ap", "arm", "cb", "cm", "coords", "count", "cta", "decl", "loaded", "n", "pend", "phases", "stage", "token", "tx", "waited", "wr")

    def __init__(self, decl: int, cta: int, stage: int, count: int) -> None:
        self.decl, self.cta, self.stage, self.count = decl, cta, stage, count
        self.n = 0
        self.pend = count
        self.tx = self.ak = self.ap = self.cm = self.cb = self.wr = self.token = 0
        self.waited = 0
        self.loaded = 0
        self.arm = 0
        self.phases: list[Phase] = []
        self.coords: dict[int, tuple[int, ...]] = {}

    @property
    def open(self) -> bool:
        """Whether the open phase has been given something but is not complete."""
        return (self.pend != self.count or self.tx != 0) and not (self.arm and not self.pend and self.tx == self.arm)


class Meet:
    """One hardware named barrier (or the cluster barrier): threads that have come, and the token of the last generation."""

    __slots__ = ("ak", "ap", "came", "gen", "got", "need", "tok_k", "tok_p")

    def __init__(self, need: int) -> None:
        self.need = need
        self.got = self.gen = self.ak = self.ap = self.tok_k = self.tok_p = 0
        self.came: list[int] = []


class Cta:
    """One CTA: its barriers by declaration and stage, and for every atom of its shared memory the last write and the reads since.

    `W[a]` is the bit of the last write, `G[a]` the same if it was an ordinary write, `R[a]` the bits of reads since, `O[a]` the operation
    that wrote, `Y[a]` how the lanes of one member were mapped to the bytes when only they touched them.
    """

    __slots__ = ("G", "O", "R", "W", "Y", "bars", "meets", "rank", "turns")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.bars: list[list[Bar]] = []
        self.meets: dict[tuple[str, int], Meet] = {}
        self.turns: dict[str, list[list[int]]] = {}
        self.W: list[int] = []
        self.G: list[int] = []
        self.R: list[int] = []
        self.O: list[int] = []
        self.Y: list[Any] = []


class Member:
    """One agent: a role member of a CTA, with its program, its knowledge and its asynchronous groups in issue order."""

    __slots__ = (
        "E", "F", "K", "L", "P", "acc", "armed", "body", "bulk", "clock", "cp", "cp_open", "cta", "cur", "defined", "done", "gw", "held", "index", "lds",
        "mma", "number", "pc", "pending", "role", "single", "tc", "tc_open", "tmem", "tmem_busy", "tracked", "waited", "waiting", "wcur", "world",
    )  # fmt: skip

    def __init__(self, number: int, role: str, index: int, cta: Cta, body: Body, single: bool, world: World) -> None:
        self.number, self.role, self.index, self.cta, self.body, self.single, self.world = number, role, index, cta, body, single, world
        self.clock = world  # which hands out bits: one for all clusters of a grid
        self.K: int = 0
        self.L: int = 0
        self.E: int = 0
        self.P: int = 0
        self.F: int = 0
        self.gw = 0  # own ordinary writes of shared memory
        self.cur = 0  # bit of the open access epoch, 0 when none is open
        self.wcur = 0  # bit of the open epoch of wait-returns
        self.waited = 0  # wait-returns of own lanes that another lane need not know of yet
        self.mma: list[tuple[int, int, int, int]] = []  # (bits, accumulator mask, A-fragment mask, op) of wgmma groups in flight
        self.acc = self.held = 0
        self.bulk: list[tuple[int, int]] = []  # (bit, op) of bulk groups whose reads may be going on
        self.cp: list[tuple[int, int]] = []  # (bits, op) of closed cp.async groups
        self.cp_open: list[tuple[int, int]] = []
        self.tracked = 0  # bits of copies that an mbarrier arrival follows
        self.tc = 0  # bits of all tensor-core work issued so far
        self.tc_open: list[tuple[int, int]] = []  # (bit, op) that no commit has collected yet
        self.tmem: list[tuple[int, int, str, int]] = []  # (bit, registers, engine, op) of tensor-memory moves
        self.tmem_busy = 0
        self.defined = 0
        self.armed: dict[tuple[int, int], int] = {}
        self.lds: dict[int, int] = {}
        self.pc = 0
        self.waiting = -1
        self.pending: Event | None = None
        self.done = False

    def variables(self) -> dict[str, Any]:
        """Scalars in scope where the member stands, by name."""
        frame = getattr(self.body, "gi_frame", None)
        inner = getattr(self.body, "gi_yieldfrom", None)
        if inner is not None:
            frame = inner.gi_frame
        return {} if frame is None else {k[2:]: v for k, v in frame.f_locals.items() if k.startswith("v_")}


@dataclass(slots=True)
class World:
    """One run: the members of one cluster, the next free bit, and what the setting gives to `lm.ld`.

    `upstream` holds the bits of waits for the launch before this one; `short` the stores that left out rows of their sequence (role, first
    row, rows, end of the sequence), `exact` those that wrote all that is left somewhere.
    """

    ctas: list[Cta] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    top: int = 0
    events: int = 0
    used: set[int] = field(default_factory=set)
    wrote: set[int] = field(default_factory=set)
    upstream: int = 0
    short: dict[int, tuple[str, int, int, int]] = field(default_factory=dict)
    exact: set[int] = field(default_factory=set)
    values: Any = None

    def bit(self) -> int:
        """A fresh bit."""
        b = 1 << self.top
        self.top += 1
        return b


def both(m: Member) -> tuple[Cta, Cta]:
    """The CTAs of the pair that a member multiplies for, its own first."""
    ctas, rank = m.world.ctas, m.cta.rank
    return ctas[rank], ctas[rank ^ 1]


def open_epoch(m: Member) -> int:
    """The bit of what the member does from here to its next release."""
    clock = m.clock
    b = 1 << clock.top
    clock.top += 1
    if m.single:
        m.K |= b
    else:
        m.L |= b
    m.cur = b
    return b


def join_lanes(m: Member) -> None:
    """The lanes of a member of one warp meet: each knows what all did, and what follows is a new epoch."""
    m.cur = m.wcur = 0
    m.K |= m.L | m.E
    m.P |= m.F
    m.L = m.E = m.F = m.waited = 0


def complete(bar: Bar, clock: World) -> None:
    """The open phase has all arrivals and bytes: it becomes a token, and the next one opens."""
    if bar.wr & ~bar.ak:
        raise Found("S020", bar=bar, phase=bar.n, missing=bar.wr & ~bar.ak)
    cb = bar.cb
    if not cb:
        cb = 1 << clock.top
        clock.top += 1
    bar.phases.append((bar.ak | cb, bar.ap, cb, bar.cm))
    bar.token = cb
    bar.n += 1
    bar.pend = bar.count
    bar.ak = bar.ap = bar.cm = bar.cb = bar.wr = 0


def credit(bar: Bar, known: int) -> None:
    """A contribution is stable if its giver knows the phase before to be complete (those who call see to that, as it nearly always is), or gave
    or knows all that completes it."""
    given = bar.phases[-1][3]
    if given & ~known:
        raise Found("S021", bar=bar, phase=bar.n, missing=given & ~known)

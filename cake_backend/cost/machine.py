"""The timing machine: when each step of each member happens, given barriers, groups and units with times.

Members are advanced in the order of their clocks, so that a unit serves requests in the order in which they are made. A step either
happens, moving its member's clock, or parks the member until another one makes it possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from cake_backend.cost.calibration import Constants
from cake_backend.cost.demand import Demand, Piece
from cake_backend.cost.loops import LoopStack
from cake_backend.cost.phases import own_bytes, phase_bytes
from cake_backend.cost.spread import SPREAD
from cake_backend.cost.tensor_unit import Group, TensorUnit
from cake_ir.derive.arrivals import arrivals
from cake_ir.derive.clusters import arrival_targets
from cake_ir.program import Program
from cake_ir.walk.code import Body, Event

_LATENCIES = (
    "mma_fixed", "mma_group_issue", "mma_serial_gap", "tma_latency", "tile_next", "tma_issue", "expect_issue", "wait_ready", "arrive_issue", "arrive_seen",
    "arrive_seen_remote", "fence_gpu", "turn", "cluster_sync", "fence_proxy", "drain_issue", "shfl_latency", "smem_latency", "store_issue",
    "store_read", "ld_l2", "ld_hbm", "hbm_extra",
)  # fmt: skip
UNITS = ("fill", "store", "smem", "lsu", "hbm", "alu", "fma", "mufu", "shfl", "issue")


def tick(cycles: float) -> float:
    """Cycles in whole 64ths: sums of them are exact, so that equal times compare equal wherever on the clock they lie."""
    return round(cycles * 64) / 64


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known beyond the schedule's text: from the compiler's report, or from a question asked of the model.

    `fences`: every arrive on a barrier of cluster scope pays a device-wide fence. `miss` is the share of loaded bytes that come from
    HBM, by operation id; `load` the share of SMs that load at the same time. `free` names pieces (by kind) that cost nothing.
    """

    serialised: bool = False
    fences: bool = False
    load: float = 1.0
    miss: dict[int, float] = field(default_factory=dict)
    free: frozenset[str] = frozenset()


@dataclass(slots=True)
class Member:
    """One role member of one resident block: its program, its clock, and what it has in flight."""

    number: int
    block: int
    role: str
    index: int
    body: Body
    t: float = 0.0
    event: Event | None = None
    piece: int = 0
    parked: bool = False
    done: bool = False
    started: bool = False
    reply: Any = None
    loops: LoopStack = field(default_factory=LoopStack)
    groups: dict[str, list[float]] = field(default_factory=dict)
    mmas: list[Group] = field(default_factory=list)
    open_copies: float = 0.0
    slots: dict[str, int] = field(default_factory=dict)
    draw: int = 0


class Slot:
    """One mbarrier: times of its completed phases, and what the phase under way has gathered."""

    __slots__ = ("arrived", "gathered", "landed", "times", "waiters")

    def __init__(self) -> None:
        self.times: list[float] = []
        self.arrived = 0
        self.gathered = 0.0
        self.landed = 0.0
        self.waiters: list[Member] = []


class Meeting:
    """A named barrier or a turn: who has come, and when the last one did."""

    __slots__ = ("at", "last", "tokens", "waiters")

    def __init__(self) -> None:
        self.last = 0.0
        self.at: list[Member] = []
        self.tokens: dict[int, list[float]] = {}
        self.waiters: dict[int, Member] = {}


class Machine:
    """State of all barriers and units of one SM, and the step function."""

    def __init__(self, program: Program, demands: dict[int, Demand], c: Constants, evidence: Evidence, wake: Callable[[Member], None],
                 look: Callable[[float], None]) -> None:  # fmt: skip
        self.c = replace(c, **{name: tick(getattr(c, name)) for name in _LATENCIES})
        self.program, self.demands, self.evidence, self.wake, self.look = program, demands, evidence, wake, look
        self.tensor = TensorUnit(self.c.mma_fixed)
        self.draining: dict[int, Member] = {}
        self.free: dict[str, float] = dict.fromkeys(UNITS, 0.0)
        self.busy: dict[str, float] = dict.fromkeys(UNITS, 0.0)
        self.waits: dict[tuple[int, int], float] = {}
        self.runs: dict[int, int] = {}
        self.bytes: dict[str, float] = {"own": 0.0, "landed": 0.0, "operands": 0.0, "stored": 0.0}
        self.slots: dict[tuple[int, str], list[Slot]] = {}
        self.meetings: dict[tuple[int, str], Meeting] = {}
        self.top: dict[tuple[int, str], int] = {}
        self.stages = {name: ring.stages for name, ring in program.rings.items()}
        self.expected = {name: sum(share.members for share in a.shares) for name, a in arrivals(program).items()}
        self.remote = {name: len(arrival_targets(program, name, 0)) > 1 for name in program.barriers}
        self.phase_bytes = phase_bytes(program)
        self.own_bytes = own_bytes(program, demands)
        self._do: dict[str, Callable[[Member, Piece, tuple[Any, ...]], bool]] = {
            "pipes": self._pipes, "smem": self._smem, "gmem": self._gmem, "tma": self._tma, "bulk": self._bulk, "mma": self._mma,
            "wait": self._wait, "arrive": self._arrive, "sync": self._sync, "cluster_sync": self._cluster_sync,
            "turn_wait": self._turn_wait, "turn_pass": self._turn_pass, "fence": self._fence, "drain": self._drain,
            "commit": self._commit, "unknown": lambda m, p, v: True,
        }  # fmt: skip

    # ------------------------------------------------------------------ stepping

    def step(self, m: Member) -> bool:
        """Execute the pending event of `m` from the piece where it stopped; False if it has to wait."""
        assert m.event is not None
        op = m.event[0]
        if op < 0:
            return True
        pieces = self.demands[op].pieces
        while m.piece < len(pieces):
            p = pieces[m.piece]
            if p.kind not in self.evidence.free and not self._do[p.kind](m, p, m.event):
                return False
            m.piece += 1
        m.piece = 0
        self.runs[op] = self.runs.get(op, 0) + 1
        return True

    def waited(self, m: Member, cycles: float) -> None:
        """Book waiting time on the operation that `m` is executing."""
        if cycles > 0 and m.event is not None:
            key = (m.number, m.event[0])
            self.waits[key] = self.waits.get(key, 0.0) + cycles

    def serve(self, unit: str, t: float, work: float) -> float:
        """Let a unit work from `t` at the earliest; when it ends."""
        start = self.free[unit]
        if t > start:
            start = t
        work = tick(work)
        end = start + work
        self.free[unit] = end
        self.busy[unit] += work
        return end

    # ------------------------------------------------------------------ barriers

    def _slot(self, m: Member, barrier: str, value: Any) -> tuple[Slot, int]:
        """The mbarrier behind a running count, and the number of completed phases that a wait there asks for."""
        n = value[0] if isinstance(value, tuple) else value
        b = self.program.barriers[barrier]
        ring = b.pipeline
        stages = self.stages[ring]
        key = (m.block, barrier)
        if key not in self.slots:
            self.slots[key] = [Slot() for _ in range(stages)]
        m.slots[ring] = n
        if n > self.top.get((m.block, ring), -1):
            self.top[(m.block, ring)] = n
        return self.slots[key][n % stages], n // stages + (0 if b.primed else 1)

    def _wait(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        slot, need = self._slot(m, p.name, values[p.stage] if p.stage >= 0 else 0)
        c = self.c
        if need <= 0:
            m.t += c.wait_ready
            return True
        if need > len(slot.times):
            slot.waiters.append(m)
            return False
        at = slot.times[need - 1]
        if at <= m.t:
            m.t += c.wait_ready
            return True
        then = at + (c.arrive_seen_remote if self.remote[p.name] else c.arrive_seen)
        self.waited(m, then - m.t)
        m.t = max(then, m.t + c.wait_ready)
        return True

    def _arrive(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        slot, _ = self._slot(m, p.name, values[p.stage] if p.stage >= 0 else 0)
        c, barrier = self.c, self.program.barriers[p.name]
        if p.order == "cluster" or (self.evidence.fences and barrier.scope == "cluster"):
            m.t += c.fence_gpu
        m.t += c.arrive_issue
        slot.arrived += 1
        slot.landed = max(slot.landed, m.t)
        if barrier.arrive != "tx" and slot.arrived >= self.expected[p.name]:
            self._complete(slot)
        return True

    def _complete(self, slot: Slot) -> None:
        slot.times.append(slot.landed)
        slot.arrived = 0
        slot.gathered = slot.landed = 0.0
        for waiter in slot.waiters:
            self.wake(waiter)
        slot.waiters.clear()

    def _tma(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        value = values[p.stage] if p.stage >= 0 else 0
        slot, _ = self._slot(m, p.name, value)
        c = self.c
        if not slot.gathered:
            m.t += c.expect_issue
        m.t += c.tma_issue
        landed = self.serve("fill", m.t, p.size / c.fill_bytes)
        assert m.event is not None
        op = m.event[0]
        m.draw = m.loops.turn % len(SPREAD)
        extra = tick(SPREAD[m.draw] * (self.evidence.load * c.load_wait * self.own_bytes[op] / c.fill_bytes + self.evidence.miss.get(op, 0.0) * c.hbm_extra))
        slot.landed = max(slot.landed, landed + c.tma_latency + extra)
        slot.gathered += p.size * p.times
        self.bytes["own"] += p.size
        self.bytes["landed"] += p.size * p.times
        if slot.gathered >= self.phase_bytes[op]:
            self._complete(slot)
        return True

    # ------------------------------------------------------------------ asynchronous groups

    def _mma(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        c = self.c
        m.t += c.mma_group_issue
        work = p.flops / (c.tensor_flop_8 if p.eight_bit else c.tensor_flop_16)
        self.bytes["operands"] += p.size
        group = Group(m.t, p.times, tick(work / p.times), c.mma_serial_gap if self.evidence.serialised else 0.0)
        m.mmas.append(group)
        at = self.tensor.add(m.number, group)
        if at is not None:
            self.look(at)
        return True

    def serve_tensor(self, t: float) -> None:
        """Let the tensor core do one instruction at `t`, and wake who waits for the group that it ends."""
        ended, again = self.tensor.serve(t)
        if again is not None:
            self.look(again)
        if ended is not None:
            m = self.draining.pop(ended, None)
            if m is not None:
                self.wake(m)

    def _drain_mma(self, m: Member, p: Piece) -> bool:
        """Wait until at most `p.pending` MMA groups of the member are in flight."""
        last = len(m.mmas) - p.pending - 1
        if last >= 0:
            then = m.mmas[last].done
            if then is None:
                self.draining[m.number] = m
                return False
            self.waited(m, then - m.t)
            m.t = max(m.t, then)
            del m.mmas[: last + 1]
        m.t += self.c.drain_issue
        return True

    def _bulk(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        c = self.c
        m.t += c.store_issue
        self.bytes["stored"] += p.size
        moved = self.serve("store", m.t, p.size / c.fill_bytes)
        m.groups.setdefault("bulk", []).append(max(m.t + c.store_read, moved))
        return True

    def _commit(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        m.groups.setdefault(p.name, []).append(m.open_copies)
        return True

    def _drain(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        c = self.c
        if p.name == "wgmma":
            return self._drain_mma(m, p)
        groups = m.groups.get(p.name, [])
        m.t += c.drain_issue
        if len(groups) > p.pending:
            then = groups[len(groups) - p.pending - 1]
            if p.name == "bulk" and not p.read:
                then += c.hbm_extra
            self.waited(m, then - m.t)
            m.t = max(m.t, then)
            del groups[: len(groups) - p.pending]
        return True

    # ------------------------------------------------------------------ meetings

    def _sync(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        c = self.c
        cost = tick(c.sync_128 if p.threads <= 128 else c.sync_256 + max(0, p.threads - 256) / 128 * (c.sync_256 - c.sync_128))
        if p.parties <= 1:
            m.t += cost
            return True
        meeting = self.meetings.setdefault((m.block, p.name), Meeting())
        if m in meeting.at:  # woken: the last one has come
            meeting.at.remove(m)
            self.waited(m, meeting.last - m.t)
            m.t = max(m.t, meeting.last) + cost
            return True
        if len(meeting.at) + 1 < p.parties:
            meeting.at.append(m)
            return False
        meeting.last = m.t
        for other in meeting.at:
            self.wake(other)
        m.t += cost
        return True

    def _cluster_sync(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        m.t += self.c.cluster_sync
        return True

    def _turn(self, m: Member, name: str) -> Meeting:
        key = (m.block, name)
        if key not in self.meetings:
            self.meetings[key] = Meeting()
            self.meetings[key].tokens = {0: [0.0]}
        return self.meetings[key]

    def _turn_wait(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        meeting = self._turn(m, p.name)
        tokens = meeting.tokens.setdefault(m.index, [])
        if not tokens:
            meeting.waiters[m.index] = m
            return False
        at = tokens.pop(0)
        self.waited(m, at - m.t)
        m.t = max(m.t, at) + self.c.turn
        return True

    def _turn_pass(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        meeting = self._turn(m, p.name)
        following = (m.index + 1) % self.program.roles[m.role].members
        meeting.tokens.setdefault(following, []).append(m.t)
        waiter = meeting.waiters.pop(following, None)
        if waiter is not None:
            self.wake(waiter)
        return True

    # ------------------------------------------------------------------ work of the member itself

    def _fence(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        m.t += self.c.fence_proxy
        return True

    def _pipes(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        start, end = m.t, m.t
        for pipe, work in p.count.cycles(self.c, self.program.roles[m.role].member_warps).items():
            end = max(end, self.serve(pipe, start, work))
        m.t = end + p.count.shuffles_deep * self.c.shfl_latency
        return True

    def _smem(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        c = self.c
        alone = tick(p.size / 512 / self.program.roles[m.role].member_warps * c.smem_warp)
        moved = self.serve("smem", m.t, p.size * p.factor / c.smem_bytes)
        m.t = max(m.t + alone, moved) + c.smem_latency
        return True

    def _gmem(self, m: Member, p: Piece, values: tuple[Any, ...]) -> bool:
        c = self.c
        end = self.serve("lsu", m.t, p.factor * c.sector)
        moved = self.serve("hbm", m.t, p.size / (c.hbm_tb_s * 1e3 / c.sms / c.ghz_max))
        m.t = max(end, moved) + c.ld_hbm if p.read else end
        return True

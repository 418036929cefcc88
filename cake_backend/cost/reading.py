"""The timing reading: all members of one SM run against the timing machine until they end or repeat themselves."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cake_backend.cost.calibration import Constants
from cake_backend.cost.demand import Demand, demands
from cake_backend.cost.loops import LoopMaker
from cake_backend.cost.machine import Evidence, Machine, Member
from cake_backend.cost.steady import Repetition
from cake_ir.derive.structure import sites
from cake_ir.program import Expr, For, If, Program, Stmt
from cake_ir.walk.code import Context, RoleCode, compile_roles

EVENTS = 120_000  # about a second; a walk that repeats itself takes a few thousand
_TENSOR = -1  # the tensor core in the queue of members


class Unreadable(Exception):
    """The walk cannot be timed; `code` is the reason's code, the message the reason."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace: member (or -1 for the tensor core, then `op` is the member served), operation id, its cycles, and the waiting in them."""

    member: int
    op: int
    start: float
    end: float
    waited: float


@dataclass(frozen=True, slots=True)
class MemberTime:
    """How long one member took and where it waited: cycles by operation id."""

    role: str
    index: int
    cycles: float
    waits: dict[int, float]


@dataclass(frozen=True, slots=True)
class Reading:
    """The times of one SM from the first instruction of its first block to the last of its last, without prologue.

    `busy` are cycles by unit, `runs` executions by operation id (all members), `bytes` totals by kind of traffic.
    """

    cycles: float
    members: tuple[MemberTime, ...]
    busy: dict[str, float]
    runs: dict[int, int]
    bytes: dict[str, float]
    settled: bool
    events: int
    periods: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A program prepared for any number of readings."""

    program: Program
    code: RoleCode
    maker: LoopMaker
    demands: dict[int, Demand]
    role_of: dict[int, str]
    fixed_tiles: bool


def prepare(program: Program) -> Subject:
    """Compile the walk and derive what each operation demands."""
    maker = LoopMaker()
    code = compile_roles(program, maker)
    role_of = {site.op.id: site.role for site in sites(program)}
    return Subject(program, code, maker, demands(program, code.ops, role_of), role_of, _fixed_tiles(program))


def _fixed_tiles(program: Program) -> bool:
    """Whether all tiles run the same loops: no trip count and no branch depends on the tile or on loaded data."""
    return all(_fixed(block.body, frozenset()) for block in program.body)


def _fixed(body: tuple[Stmt, ...], varying: frozenset[str]) -> bool:
    for s in body:
        if isinstance(s, For):
            if any(e is not None and _mentions(e, varying) for e in (s.lo, s.hi)):
                return False
            if not _fixed(s.body, varying | {s.var} if s.kind == "tiles" else varying):
                return False
        elif isinstance(s, If):
            if _mentions(s.cond, varying) or not (_fixed(s.then, varying) and _fixed(s.orelse, varying)):
                return False
        elif hasattr(s, "targets"):
            value = s.value  # type: ignore[union-attr]  # an Assign
            loaded = not isinstance(value, Expr)
            if loaded or _mentions(value, varying):
                varying = varying | frozenset(s.targets)  # type: ignore[union-attr]  # an Assign
    return True


def _mentions(e: Expr, names: frozenset[str]) -> bool:
    return any(x.op == "var" and x.attrs.get("name") in names for x in e.parts())


def read(
    subject: Subject,
    constants: Constants,
    args: Mapping[str, Any],
    tiles: Callable[[str], Sequence[tuple[int, ...]]],
    *,
    blocks: int = 1,
    evidence: Evidence | None = None,
    extents: Mapping[tuple[str, int], int] | None = None,
    data: Mapping[str, Sequence[int]] | None = None,
    trace: list[Step] | None = None,
) -> Reading:
    """Time the first SM: `blocks` resident blocks, each given `tiles(scheduler)`. `data` holds tensors that `lm.ld` reads.

    Every step is appended to `trace`, if there is one; iterations that are skipped do not appear, and leave no gap.

    Raises `Unreadable`: R06 where a value that decides control is not known, R03 where the walk gets stuck or does not end.
    """
    return _Run(subject, constants, args, tiles, blocks, evidence or Evidence(), dict(extents or {}), data or {}, trace).run()


class _Run:
    def __init__(self, subject: Subject, constants: Constants, args: Mapping[str, Any], tiles: Callable[[str], Sequence[tuple[int, ...]]],
                 blocks: int, evidence: Evidence, extents: dict[tuple[str, int], int], data: Mapping[str, Sequence[int]],
                 trace: list[Step] | None) -> None:  # fmt: skip
        self.subject, self.data, self.trace = subject, data, trace
        self.queue: list[tuple[float, int]] = []
        program = subject.program
        self.machine = Machine(program, subject.demands, constants, evidence, self._wake, self._look)
        self.members: list[Member] = []
        for block in range(blocks):
            for role, body in subject.code.roles.items():
                for index in range(program.roles[role].members):
                    context = Context(dict(args), index, (0, 0), program.launch.cluster, 0, extents, self._tiles(tiles))
                    self.members.append(Member(len(self.members), block, role, index, body(context)))
        stages = max((r.stages for r in program.rings.values()), default=1)
        self.repetition = Repetition(self.machine, self.members, subject.fixed_tiles, guard=2 * stages + 2)
        self.pacemaker = next((m for m in self.members if self._computes(m.role)), self.members[0] if self.members else None)

    def _computes(self, role: str) -> bool:
        return any(self.subject.role_of[i] == role and d.tensor for i, d in self.subject.demands.items())

    def _tiles(self, tiles: Callable[[str], Sequence[tuple[int, ...]]]) -> Callable[[str], Iterable[tuple[int, ...]]]:
        return lambda scheduler: self.subject.maker.over(tiles(scheduler))

    def _wake(self, m: Member) -> None:
        if m.parked:
            m.parked = False
            heapq.heappush(self.queue, (m.t, m.number))

    def _look(self, t: float) -> None:
        heapq.heappush(self.queue, (t, _TENSOR))

    def run(self) -> Reading:
        self.queue = [(m.t, m.number) for m in self.members]
        heapq.heapify(self.queue)
        events = 0
        while self.queue:
            t, number = heapq.heappop(self.queue)
            if number == _TENSOR:
                self._tensor(t)
                continue
            events += self._advance(self.members[number], EVENTS - events)
        stuck = sorted({m.role for m in self.members if not m.done})
        if stuck:
            raise Unreadable("R03", f"the walk gets stuck in {', '.join(stuck)}: verify the schedule first")
        return self._result(events)

    def _tensor(self, t: float) -> None:
        unit = self.machine.tensor
        before = unit.busy
        self.machine.serve_tensor(t)
        if self.trace is not None and unit.busy > before:
            self.trace.append(Step(_TENSOR, unit.last, t, t + unit.busy - before, 0.0))

    def _advance(self, m: Member, left: int) -> int:
        """Run one member until it is no longer the earliest, has to wait, or ends; the number of events, of which only so many are left."""
        queue, step, maker = self.queue, self.machine.step, self.subject.maker
        events = 0
        while True:
            if m.event is None:
                maker.current = m.loops
                m.loops.turned.clear()
                try:
                    m.event = m.body.send(m.reply) if m.started else next(m.body)
                    m.started = True
                    m.reply = None
                except StopIteration:
                    m.done = True
                    return events
                for loop in m.loops.turned:
                    if loop.values is not None:
                        m.t += self.machine.c.tile_next
                    if m is self.pacemaker:
                        self.repetition.turned(m, loop)
            start, waits = m.t, self.machine.waits
            key = (m.number, m.event[0])
            waited = waits.get(key, 0.0) if self.trace is not None else 0.0
            if not step(m):
                m.parked = True
                return events
            if self.trace is not None and m.event[0] >= 0:
                self.trace.append(Step(m.number, m.event[0], start, m.t, waits.get(key, 0.0) - waited))
            self._reply(m)
            m.event = None
            events += 1
            if events > left:
                raise Unreadable("R03", f"the walk did not settle within {EVENTS} steps")
            if queue and m.t > queue[0][0]:
                heapq.heappush(queue, (m.t, m.number))
                return events

    def _reply(self, m: Member) -> None:
        """Give a loaded scalar its value, where one is expected."""
        assert m.event is not None
        op_id = m.event[0]
        if op_id < 0 or not self.subject.demands[op_id].replies:
            return
        op = self.subject.demands[op_id].op
        tensor = str(op.attrs.get("tensor", ""))
        code = self.subject.code.ops[op_id]
        at = next((m.event[i] for i in code.index.values() if isinstance(m.event[i], int)), 0)
        known = self.data.get(tensor)
        if known is None or at >= len(known):
            raise Unreadable("R06", f"`{tensor or op.name}` is read at run time and decides what is done; give its values to predict for them")
        m.reply = known[at]

    def _result(self, events: int) -> Reading:
        machine, skipped = self.machine, self.repetition.skipped
        times = []
        for m in self.members:
            waits = {op: cycles for (number, op), cycles in machine.waits.items() if number == m.number}
            times.append(MemberTime(m.role, m.index, m.t + skipped, waits))
        drained = max(machine.free[unit] for unit in ("hbm", "lsu", "store")) + skipped  # a block's stores outlive its threads
        return Reading(
            max([drained, *(t.cycles for t in times)]), tuple(times), {"tensor": machine.tensor.busy, **machine.busy}, dict(machine.runs), dict(machine.bytes),
            self.repetition.settled, events, tuple(self.repetition.periods),
        )  # fmt: skip

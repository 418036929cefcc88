"""Steady state: finding that the machine repeats itself, and skipping the repetitions.

With fixed participants the reading is a deterministic system whose state, taken relative to the clock and to the ring counters, recurs.
Once it has recurred after some iterations of a loop, the same number of iterations again takes the same time; they are skipped by
moving the loops forward and adding to the clock, the rings stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cake_backend.cost.loops import Loop
from cake_backend.cost.machine import Machine, Member, Slot

_PAST = -2000.0  # what happened longer ago than this can no longer delay anybody
_SNAPSHOTS = 64
_LEAST_TRIPS = 8


@dataclass(slots=True)
class Snapshot:
    """The machine when the pacemaker began an iteration."""

    total: float
    key: tuple[Any, ...]
    clocks: tuple[Any, ...]
    places: list[list[tuple[Loop, int]]]
    busy: dict[str, float]
    waits: dict[tuple[int, int], float]
    runs: dict[int, int]
    bytes: dict[str, float]
    tensor: float


class Repetition:
    """Watches one member's loops and skips what repeats; `skipped` is the time that was not simulated."""

    def __init__(self, machine: Machine, members: list[Member], fixed_tiles: bool, guard: int) -> None:
        self.machine, self.members, self.fixed_tiles, self.guard = machine, members, fixed_tiles, guard
        self.skipped = 0.0
        self.settled = True
        self.periods: list[float] = []
        self._seen: dict[int, list[Snapshot]] = {}

    def turned(self, m: Member, loop: Loop) -> None:
        """The pacemaker `m` has begun an iteration of `loop`: skip ahead if this state has been here before."""
        if loop.end < _LEAST_TRIPS and (loop.values is None or loop.end < 4):
            return
        if loop.values is not None and not self.fixed_tiles:
            return
        if loop.end - loop.at <= self.guard * (loop.values is None):
            self._seen.pop(id(loop), None)
            return
        seen = self._seen.setdefault(id(loop), [])
        if len(seen) > _SNAPSHOTS:
            return
        now = self._snapshot(m.t)
        for then in reversed(seen):
            if then.key == now.key and then.clocks == now.clocks and self._skip(then, now):
                seen.clear()
                return
        if len(seen) == _SNAPSHOTS:
            middle = seen[len(seen) // 2 :]
            then = next((s for s in middle if s.key == now.key), None)
            if then is not None and self._skip(then, now):
                self.settled = False
                return
        seen.append(now)

    def _skip(self, then: Snapshot, now: Snapshot) -> bool:
        """Move every loop forward by as many whole periods as all of them have left, short of the last few iterations."""
        moves: list[tuple[Loop, int]] = []
        rounds = 1 << 60
        for a, b in zip(then.places, now.places, strict=True):
            step = _advance(a, b)
            if step is None:
                return False
            loop, by = step
            if loop is None or by == 0:
                continue
            guard = 1 if loop.values is not None else self.guard
            rounds = min(rounds, (loop.end - guard - loop.at) // by)
            moves.append((loop, by))
        if not moves or rounds < 1 or rounds >= 1 << 60:
            return False
        for loop, by in moves:
            loop.at += by * rounds
        period = now.total - then.total
        self.periods.append(period)
        self.skipped += period * rounds
        machine = self.machine
        machine.tensor.busy += rounds * (now.tensor - then.tensor)
        for live, a, b in ((machine.busy, then.busy, now.busy), (machine.waits, then.waits, now.waits),
                           (machine.runs, then.runs, now.runs), (machine.bytes, then.bytes, now.bytes)):  # fmt: skip
            for name, value in b.items():
                live[name] = live.get(name, 0) + rounds * (value - a.get(name, 0))  # type: ignore[index,arg-type,operator,assignment]  # one loop over four tables of numbers
        return True

    # ------------------------------------------------------------------ the relative state

    def _snapshot(self, now: float) -> Snapshot:
        machine = self.machine
        key: list[Any] = []
        clocks: list[Any] = []
        places: list[list[tuple[Loop, int]]] = []
        for m in self.members:
            key.append((m.event[0] if m.event else None, m.piece, m.parked, m.done, len(m.loops.stack), m.draw))
            key.append(tuple(n - machine.top.get((m.block, ring), 0) for ring, n in m.slots.items()))
            clocks.append(None if m.parked or m.done else m.t - now)
            clocks.append(tuple(None if g.done is None else _past(g.done - now) for g in m.mmas))
            clocks.append(tuple((name, tuple(_past(t - now) for t in groups)) for name, groups in m.groups.items()))
            places.append([(loop, loop.at) for loop in m.loops.stack])
        for (block, name), slots in machine.slots.items():
            barrier = machine.program.barriers[name]
            top = machine.top.get((block, barrier.pipeline), 0)
            state = sorted(((_next(slot, s, len(slots), barrier.primed) - top, slot) for s, slot in enumerate(slots)), key=lambda x: x[0])
            key.append(tuple((n, slot.arrived, slot.gathered, tuple(w.number for w in slot.waiters)) for n, slot in state))
            clocks.append(tuple((_past(slot.times[-1] - now) if slot.times else None, _past(slot.landed - now)) for _, slot in state))
        for meeting in machine.meetings.values():
            key.append((tuple(m.number for m in meeting.at), tuple((i, len(t)) for i, t in meeting.tokens.items()), tuple(meeting.waiters)))
            clocks.append(tuple(_past(t - now) for times in meeting.tokens.values() for t in times))
        clocks.append(tuple(max(0.0, free - now) for free in machine.free.values()))
        clocks.append(machine.tensor.state(now))
        return Snapshot(now + self.skipped, tuple(key), tuple(clocks), places, dict(machine.busy), dict(machine.waits), dict(machine.runs),
                        dict(machine.bytes), machine.tensor.busy)  # fmt: skip


def _past(dt: float) -> float:
    return dt if dt > _PAST else _PAST


def _next(slot: Slot, index: int, stages: int, primed: bool) -> int:
    """The running count whose phase completes next on this slot."""
    return (len(slot.times) + (1 if primed else 0)) * stages + index


def _advance(then: list[tuple[Loop, int]], now: list[tuple[Loop, int]]) -> tuple[Loop | None, int] | None:
    """The one loop that has moved between two nests of loops, and by how much; None where the nests do not correspond.

    Loops outside of it are the same and have not moved; loops inside of it may be new ones, at the same place as the old ones were.
    """
    if len(then) != len(now):
        return None
    moved: Loop | None = None
    by = 0
    for (a, at_a), (b, at_b) in zip(then, now, strict=True):
        if moved is None and a is b:
            if at_a != at_b:
                moved, by = a, at_b - at_a
            continue
        if moved is None or (a.start, at_a, a.end) != (b.start, at_b, b.end):
            return None
    return (moved, by) if by >= 0 else None

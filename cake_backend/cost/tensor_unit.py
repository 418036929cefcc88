"""The tensor core of one SM: instructions of the members' groups, one member after the other.

Each member's groups are served in order; members that have work take turns instruction by instruction, so that members which started
together end together, as two consumers of one tile do on the device.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Group:
    """One committed group: `left` instructions of `work` cycles each, not to start before `ready`; `done` once it is known."""

    ready: float
    left: int
    work: float
    gap: float
    done: float | None = None


@dataclass(slots=True)
class TensorUnit:
    """Queues by member and the time until which the unit is busy."""

    fixed: float
    free: float = 0.0
    busy: float = 0.0
    last: int = -1
    running: bool = False
    queues: dict[int, deque[Group]] = field(default_factory=dict)

    def add(self, member: int, group: Group) -> float | None:
        """Queue a group; the time at which the unit must be looked at, or None where it is looked at anyway."""
        queue = self.queues.get(member)
        if queue is None:
            queue = self.queues[member] = deque()
        queue.append(group)
        if self.running:
            return None
        self.running = True
        return max(self.free, group.ready)

    def serve(self, t: float) -> tuple[int | None, float | None]:
        """Serve one instruction at `t`: the member whose group is thereby known to end, if any, and when to look again, if ever."""
        chosen = self._next(t)
        if chosen is None:
            waiting = [q[0].ready for q in self.queues.values() if q]
            self.running = bool(waiting)
            return None, min(waiting, default=None)
        queue = self.queues[chosen]
        group = queue[0]
        self.last = chosen
        end = t + group.work
        self.busy += group.work
        self.free = end + group.gap
        group.left -= 1
        ended = None
        if not group.left:
            group.done = end + self.fixed
            queue.popleft()
            ended = chosen
        self.running = any(self.queues.values())
        return ended, self.free if self.running else None

    def _next(self, t: float) -> int | None:
        """The member after the last one served that has an instruction ready."""
        first: int | None = None
        following: int | None = None
        for m, q in self.queues.items():
            if q and q[0].ready <= t:
                if first is None or m < first:
                    first = m
                if m > self.last and (following is None or m < following):
                    following = m
        return first if following is None else following

    def state(self, now: float) -> tuple[object, ...]:
        """The unit relative to `now`, for recognising a state that has been here before."""
        queues = tuple((m, tuple((g.left, max(0.0, g.ready - now)) for g in q)) for m, q in sorted(self.queues.items()))
        return (queues, self.last, self.running, max(0.0, self.free - now))

"""Agents and the canonical driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cake_ir.walk.code import Body, Event

BLOCKED = object()
"""What `Machine.try_step` answers when the agent cannot execute its operation yet."""


@dataclass(slots=True)
class Agent:
    """One sequential program in execution: a role member of a CTA (or, for the simulator, one of its warps)."""

    role: str
    member: int
    cta: int
    body: Body
    warp: int = 0
    number: int = 0
    pending: Event | None = None
    reply: Any = None
    started: bool = False
    done: bool = False
    steps: int = 0
    state: dict[str, Any] = field(default_factory=dict)

    def fetch(self) -> Event | None:
        """The operation to execute next, None once the program has ended. Idempotent until `complete` is called."""
        if self.pending is None and not self.done:
            try:
                self.pending = self.body.send(self.reply) if self.started else next(self.body)
                self.started, self.reply = True, None
            except StopIteration:
                self.done = True
        return self.pending

    def complete(self, result: Any = None) -> None:
        """The pending operation has been executed; `result` is its uniform scalar, if it has one."""
        self.reply, self.pending = result, None
        self.steps += 1

    def variables(self) -> dict[str, Any]:
        """Scalars in scope where the agent stands, by name: loop counters, tile fields, slots."""
        frame = getattr(self.body, "gi_frame", None)
        inner = getattr(self.body, "gi_yieldfrom", None)
        if inner is not None:
            frame = inner.gi_frame
        if frame is None:
            return {}
        return {k[2:]: v for k, v in frame.f_locals.items() if k.startswith("v_")}


class Machine(Protocol):
    """A reading's synchronisation state."""

    def try_step(self, agent: Agent, event: Event) -> Any:
        """Execute the event, giving its scalar result or None; `BLOCKED` if it has to wait."""


class WalkLimit(Exception):
    """The walk took more steps than it was allowed."""


class Stuck(Exception):
    """No agent can go on and some have not ended."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        super().__init__(f"{len(agents)} agents are blocked")
        self.agents = tuple(agents)


def drive(agents: Sequence[Agent], machine: Machine, limit: int = 100_000) -> int:
    """Run all agents to their end in the canonical order; the number of events executed.

    Raises `Stuck` on a deadlock, `WalkLimit` past `limit` events.
    """
    events = 0
    running = list(agents)
    while running:
        progress = False
        for agent in running:
            while True:
                event = agent.pending or agent.fetch()
                if event is None:
                    break
                if event[0] >= 0:
                    result = machine.try_step(agent, event)
                    if result is BLOCKED:
                        break
                else:
                    result = None
                agent.complete(result)
                progress = True
                events += 1
                if events > limit:
                    raise WalkLimit(f"more than {limit} events")
        running = [a for a in running if not a.done]
        if running and not progress:
            raise Stuck(running)
    return events

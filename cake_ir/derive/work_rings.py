"""The hidden ring through which a `counter` scheduler's tiles reach every role of a block: who asks, who reads, what it takes."""

from __future__ import annotations

from cake_ir.derive.issue import issue_roles
from cake_ir.fact import fact
from cake_ir.program import For, Program, RoleBlock, Scheduler, statements
from cake_ir.record import record

STAGES = 4
"""Tiles that the asking role may be ahead of the slowest reader."""

BYTES = STAGES * (8 + 8 + 4)
"""Shared memory of one ring: a full and an empty barrier and a number a slot."""


@record(eq=False)
class WorkRing:
    """`fetch` draws tiles and publishes them; `reads` arrivals a block say that a slot has been read."""

    scheduler: Scheduler
    fetch: str
    loops: tuple[str, ...]
    reads: int
    alone: bool
    """Whether one elected thread runs the asking role, so that it keeps its tile without reading it."""

    @property
    def empty(self) -> bool:
        """Whether nobody but the asking thread needs the tiles."""
        return self.reads == 0 and self.alone


def loops_over(block: RoleBlock, scheduler: str) -> int:
    """Tile loops of a role block over a scheduler."""
    return sum(isinstance(s, For) and s.scheduler == scheduler for s in statements(block.body))


@fact
def work_rings(program: Program) -> dict[str, WorkRing]:
    """The work ring of every `counter` scheduler that some role loops over, by the scheduler's name."""
    out: dict[str, WorkRing] = {}
    single = issue_roles(program)
    for s in program.schedulers.values():
        if s.kind != "counter":
            continue
        roles = [b.role for b in program.body if loops_over(b, s.name)]
        if not roles:
            continue
        fetch = s.fetch if s.fetch in roles else next((r for r in roles if r in single), roles[0])
        assert fetch is not None
        reads = sum(1 if r in single else program.roles[r].warps for r in roles if r != fetch or r not in single)
        out[s.name] = WorkRing(s, fetch, tuple(roles), reads, fetch in single)
    return out


def work_ring_bytes(program: Program) -> int:
    """Shared memory of all work rings."""
    return BYTES * sum(not r.empty or r.scheduler.cluster != (1, 1) for r in work_rings(program).values())

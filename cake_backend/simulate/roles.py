"""What a warp does around its role's program: take or give registers (`setmaxnreg`), and start and end the turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cake_backend.simulate import derived
from cake_backend.simulate.state import Warp
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Turn
from cake_ir.program import Program
from cake_ir.walk.code import Body

if TYPE_CHECKING:
    from cake_backend.simulate.machine import Machine

ENTER, LEAVE = -2, -3
"""Numbers of the events before and after a role's program (-1 is the walk's empty iteration)."""


def around(body: Body) -> Body:
    """A role's program between its entry and its exit."""
    yield (ENTER,)
    yield from body
    yield (LEAVE,)


def turns_of(p: Program, role: str) -> tuple[str, ...]:
    """The turns that a role's operations take."""
    used = {str(op.attrs["barrier"]) for op in p.ops if any(isinstance(e, Turn) for e in effects_of(op, p))}
    return tuple(t.name for t in p.turns.values() if t.role == role and t.name in used)


def execute(m: Machine, warp: Warp, number: int) -> Any:
    """Execute the entry or the exit of a role."""
    return _enter(m, warp) if number == ENTER else _leave(m, warp) if number == LEAVE else None


def _enter(m: Machine, warp: Warp) -> Any:
    regs = warp.role.regs
    if regs is not None:
        # A role run by one elected warp still changes the registers of all its warps.
        spare = warp.role.name in m.issue_only
        numbers = range(warp.number, warp.number + (warp.width if spare else 1))
        delta = 32 * (regs - derived.entry_registers(m.program))
        pools = [warp.cta.registers[n % 4] for n in numbers]
        for pool in pools if delta > 0 else ():
            if pool.free < delta:
                return m.block(warp, pool, f"{delta // 32} more registers a thread ({delta} a warp)")
        for pool in pools:
            pool.free -= delta
            if delta < 0:
                pool.wake()
    if warp.member == warp.role.members - 1:
        for name in turns_of(m.program, warp.role.name):
            warp.cta.named[name, 0].arrive()  # member 0 has the first turn
    return None


def _leave(m: Machine, warp: Warp) -> Any:
    """Member 0 takes back the last turn, so that the barrier is empty when the kernel ends."""
    from cake_backend.simulate.sync import join

    if warp.member == 0:
        for name in turns_of(m.program, warp.role.name):
            busy = join(m, warp, warp.cta.named[name, 0], f"the last turn of `{name}`")
            if busy is not None:
                return busy
    return None

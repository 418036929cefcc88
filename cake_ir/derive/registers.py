"""Registers that threads start with, and the pools from which roles raise their budgets."""

from __future__ import annotations

from dataclasses import dataclass

from cake_ir.program import Program
from cake_ir.targets import target

MMA_N256_LAUNCH = 154
"""Registers a thread that a kernel must be launched with to hold an f32 accumulator of 256 columns (assembler remark C7602)."""

COLUMNS = 4
"""SM sub-partitions: warp w draws from the pool of partition w modulo 4."""


def entry_registers(program: Program) -> int:
    """Registers a thread at launch: what the block's threads, and the blocks asked for on an SM, leave to each."""
    return target(program.target).entry_registers(program.threads, program.launch.ctas_per_sm)


@dataclass(frozen=True, slots=True)
class PoolColumn:
    """The warps of one sub-partition: their budgets, the sum asked for and the sum they started with, in registers a thread."""

    column: int
    budgets: tuple[int, ...]
    granted: int

    @property
    def asked(self) -> int:
        return sum(self.budgets)


def pool_columns(program: Program) -> tuple[PoolColumn, ...]:
    """The four pools. A role without `regs`, and a warp of no role, counts at the entry value."""
    entry = entry_registers(program)
    budgets = [entry] * (program.threads // 32)
    for r in program.roles.values():
        for w in range(r.warp_lo, r.warp_hi):
            budgets[w] = r.regs if r.regs is not None else entry
    columns = [tuple(budgets[c::COLUMNS]) for c in range(COLUMNS)]
    return tuple(PoolColumn(c, b, entry * len(b)) for c, b in enumerate(columns) if b)

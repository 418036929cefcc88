"""Registers that threads start with, and the pools from which roles raise their budgets."""

from __future__ import annotations

from cake_ir.dtypes import DTYPES
from cake_ir.program import Program
from cake_ir.record import record
from cake_ir.targets import target
from cake_ir.types import FragT

MMA_BESIDE = 26
"""Registers a thread that the assembler keeps beside the operands of wgmma in flight: descriptors, addresses, what every thread holds. With A in
registers it keeps the 4 of one instruction more. It says so itself (remarks C7507 and C7602; 154 = 128 + 26 for 64 x 256 in f32)."""

COLUMNS = 4
"""SM sub-partitions: warp w draws from the pool of partition w modulo 4."""


def entry_registers(program: Program) -> int:
    """Registers a thread at launch: what the block's threads, and the blocks asked for on an SM, leave to each."""
    return target(program.target).entry_registers(program.threads, program.launch.ctas_per_sm)


def fragment_registers(t: FragT) -> int:
    """Registers a thread of a warpgroup that a matrix fragment (`acc` or `a`) takes: its elements over 128 threads, packed."""
    return -(-t.rows * t.cols * min(32, DTYPES[t.dtype].bits) // (32 * 128))


def wgmma_registers(acc: FragT, a: object) -> int:
    """Registers a thread that one wgmma instruction into `acc` needs to be compiled at all: its 64 rows of accumulator, and what stands beside."""
    return fragment_registers(acc) * 64 // acc.rows + MMA_BESIDE + (4 if isinstance(a, FragT) else 0)


@record()
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

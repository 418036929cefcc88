"""What one block needs of shared memory: its pools, its barriers, and what aligning the first pool may cost."""

from __future__ import annotations

from cake_ir.derive.work_rings import work_ring_bytes
from cake_ir.program import Program
from cake_ir.record import record

ALIGNMENT = 1024
"""Bytes that a pool's base is aligned to where a view is swizzled or copied by the copy engine: the longest swizzle pattern."""

GUARANTEED = 16
"""Alignment of dynamic shared memory that the language of the toolkit promises."""


@record()
class SharedMemory:
    """Bytes: `pools` (each rounded up to the alignment of the next), `barriers` (mbarrier objects, the tensor-memory address, the rings of
    `counter` schedulers), `slack`."""

    pools: int
    barriers: int
    slack: int

    @property
    def total(self) -> int:
        return self.pools + self.barriers + self.slack


def shared_memory(program: Program) -> SharedMemory:
    """The three terms of a program's dynamic shared memory.

    A pool none of whose views is swizzled and none of which meets the copy engine needs no alignment beyond what every kernel gets.
    """
    align = ALIGNMENT if needs_alignment(program) else GUARANTEED
    sizes = [p.nbytes for p in program.pools.values()]
    pools = sum(-(-n // align) * align for n in sizes[:-1]) + sum(sizes[-1:])
    objects = sum(b.count or program.rings[b.pipeline].stages for b in program.barriers.values())
    objects += 2 if program.tmems else 0  # where tcgen05.alloc writes the address
    return SharedMemory(pools, 8 * objects + work_ring_bytes(program), ALIGNMENT if align == ALIGNMENT else 0)


def needs_alignment(program: Program) -> bool:
    """Whether some view's place depends on more than 16-byte alignment of its pool."""
    copied = {p.name for p in program.params if p.kind == "tma"}
    return any(v.swizzle for v in program.views.values()) or any(op.attrs.get("tensor") in copied for op in program.ops)

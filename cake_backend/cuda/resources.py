"""What a program needs that its text does not state, as this lowering places it: addresses, register budgets, derived barriers."""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda.faults import not_lowered
from cake_ir.derive import shared_memory as derived
from cake_ir.derive.named_ids import named_ids as derived_ids
from cake_ir.dtypes import DTYPES
from cake_ir.layout import ViewLayout
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Arrive, Touch
from cake_ir.program import For, If, Op, Program, Role, Stmt, View, op_of

REGISTERS = 65536
"""32-bit registers of one SM."""


def layout_of(view: View) -> ViewLayout:
    """The storage of a declared view."""
    rows, cols = (1, view.shape[0]) if len(view.shape) == 1 else (view.shape[0], view.shape[1])
    return ViewLayout(view.offset, rows, cols, DTYPES[view.dtype].bits, view.stages, view.swizzle, view.stage_bytes)


def hardware_ids(program: Program) -> dict[str, tuple[int, ...]]:
    """Hardware ids by name: of named barriers and turns, and as `member R` of the barriers derived for role R."""
    out = {}
    for each in derived_ids(program):
        key = f"member {each.name}" if each.kind == "member" else each.name
        out[key] = tuple(range(each.first, each.first + each.ids))
    return out


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Byte offsets from the aligned base, the base's alignment, and the dynamic shared memory to ask for."""

    pools: dict[str, int]
    barriers: dict[str, int]
    alignment: int
    dynamic: int


def shared_memory(program: Program) -> SharedMemory:
    """Pools in order, then 8 bytes an mbarrier; where a pool needs more alignment than the hardware gives, that much more."""
    wide = derived.needs_alignment(program)
    align = derived.ALIGNMENT if wide else derived.GUARANTEED
    at, pools = 0, {}
    for name, pool in program.pools.items():
        at = -(-at // align) * align
        pools[name] = at
        at += pool.nbytes
    at = -(-at // 8) * 8
    barriers = {}
    for name, barrier in program.barriers.items():
        barriers[name] = at
        at += 8 * (barrier.count or program.rings[barrier.pipeline].stages)
    return SharedMemory(pools, barriers, align, at + (align if wide else 0))


def entry_registers(program: Program) -> int:
    """Registers a thread at kernel entry, as `__launch_bounds__` makes the compiler allocate them."""
    threads = program.threads * max(1, program.launch.ctas_per_sm)
    return min(248, REGISTERS // threads // 8 * 8)


def released_at_cluster_scope(program: Program) -> frozenset[str]:
    """Barriers that some arrival orders at cluster scope."""
    return frozenset(str(op.attrs["barrier"]) for op in program.ops if op.name == "arrive" and op.attrs.get("order") == "cluster")


def member_barriers(program: Program, role: Role, body: tuple[Stmt, ...]) -> frozenset[int]:
    """Ids of `arrive="member"` operations in front of which the member must meet.

    One thread arrives for all. That is enough for what only the tensor core read, whose group all warps have waited for. Where threads
    have read or written shared memory themselves since the member last met, they must meet first.
    """
    found: set[int] = set()

    def scan(block: tuple[Stmt, ...], dirty: bool) -> bool:
        for s in block:
            if isinstance(s, For):
                dirty = scan(s.body, dirty) or dirty
                dirty = scan(s.body, dirty) or dirty
            elif isinstance(s, If):
                then = scan(s.then, dirty)
                dirty = scan(s.orelse, dirty) or then
            elif (op := op_of(s)) is not None:
                dirty = _after(program, role, op, dirty)
                if any(isinstance(e, Arrive) for e in effects_of(op, program)) and program.barriers[str(op.attrs["barrier"])].arrive == "member" and dirty:
                    found.add(op.id)
                    dirty = False
        return dirty

    scan(body, False)
    return frozenset(found)


def _after(program: Program, role: Role, op: Op, dirty: bool) -> bool:
    """Whether the member has unordered accesses of shared memory after an operation."""
    if op.name == "sync" and str(op.attrs["barrier"]) in program.named and role.name in program.named[str(op.attrs["barrier"])].roles:
        return False
    return dirty or any(isinstance(e, Touch) and e.space == "smem" and e.proxy == "generic" for e in effects_of(op, program))


def check_supported(program: Program) -> None:
    """Refuse what no part of this lowering can emit."""
    if program.target not in ("sm_80", "sm_89", "sm_90a"):
        not_lowered(f"the target {program.target or '(none)'}", program.span)
    for tmem in program.tmems.values():
        not_lowered("tensor memory", tmem.span)
    for barrier in program.barriers.values():
        if barrier.arrive == "mma":
            not_lowered('a barrier with arrive="mma"', barrier.span)

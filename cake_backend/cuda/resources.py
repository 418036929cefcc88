"""What a program needs that its text does not state: arrival counts, hardware barrier ids, shared-memory addresses, register budgets."""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda.cluster import targets_of
from cake_backend.cuda.context import Context
from cake_backend.cuda.faults import not_lowered
from cake_ir.dtypes import DTYPES
from cake_ir.layout import ViewLayout
from cake_ir.program import Barrier, For, If, Op, Program, Role, Stmt, View, op_of, statements
from cake_ir.types import ViewT

POOL_ALIGNMENT = 1024
"""Alignment of a pool's first byte: where every swizzle pattern starts anew."""

REGISTERS = 65536
"""32-bit registers of one SM."""

SINGLE_THREAD = frozenset(
    "tma_load tma_gather bulk_load tma_store tma_reduce bulk_store wait arrive store_wait ld fence_proxy commit".split()
)
"""Operations that one elected thread can execute for its whole role."""


def layout_of(view: View) -> ViewLayout:
    """The storage of a declared view."""
    rows, cols = (1, view.shape[0]) if len(view.shape) == 1 else (view.shape[0], view.shape[1])
    return ViewLayout(view.offset, rows, cols, DTYPES[view.dtype].bits, view.stages, view.swizzle, view.stage_bytes)


def runs_in_one_thread(program: Program, role: Role, body: tuple[Stmt, ...]) -> bool:
    """Whether a role only issues: then one elected lane of its first warp runs the body, waits included."""
    found = False
    for s in statements(body):
        op = op_of(s)
        if op is None:
            continue
        if op.name not in SINGLE_THREAD or (op.name == "ld" and "view" in op.operands):
            return False
        if op.name in ("wait", "arrive") and op.attrs["barrier"] in program.turns:
            return False
        if op.name == "arrive" and program.barriers[str(op.attrs["barrier"])].arrive == "cp_async":
            return False
        found = found or op.name.startswith(("tma", "bulk"))
    return found


def arrivals(ctx: Context, barrier: Barrier) -> int:
    """Arrivals that complete one phase of a barrier."""
    program, total = ctx.program, 0
    for name in barrier.prod:
        role = program.roles[name]
        total += {
            "tx": role.members if _splits_loads(program, role) else 1,
            "warp": role.warps,
            "member": role.members,
            "thread": 32 * role.warps,
            "cp_async": 32 * role.warps,
            "mma": 1,
        }[barrier.arrive]
    return total * (targets_of(ctx, barrier.name) if barrier.scope == "cluster" else 1)


def _splits_loads(program: Program, role: Role) -> bool:
    """Whether every member of a producer role issues loads of its own."""
    return role.members > 1


def named_ids(program: Program) -> dict[str, tuple[int, ...]]:
    """Hardware ids of named barriers and turns, in the order of their declaration; 0 is the CTA's own."""
    ids: dict[str, tuple[int, ...]] = {}
    following = 1
    for name, barrier in program.named.items():
        members = max(program.roles[r].members for r in barrier.roles) if barrier.per_member else 1
        if not barrier.per_member and 32 * sum(program.roles[r].warps for r in barrier.roles) == program.threads:
            ids[name] = (0,)
            continue
        ids[name] = tuple(range(following, following + members))
        following += members
    for name, turn in program.turns.items():
        members = program.roles[turn.role].members
        ids[name] = tuple(range(following, following + members))
        following += members
    return ids


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Byte offsets from the aligned base, and the dynamic shared memory to ask for."""

    pools: dict[str, int]
    barriers: dict[str, int]
    dynamic: int


def shared_memory(program: Program) -> SharedMemory:
    """Pools first, each on a pattern boundary, then 8 bytes an mbarrier; 1,024 bytes more for aligning the base."""
    at, pools = 0, {}
    for name, pool in program.pools.items():
        at = -(-at // POOL_ALIGNMENT) * POOL_ALIGNMENT
        pools[name] = at
        at += pool.nbytes
    at = -(-at // 8) * 8
    barriers = {}
    for name, barrier in program.barriers.items():
        barriers[name] = at
        at += 8 * program.rings[barrier.pipeline].stages
    return SharedMemory(pools, barriers, at + POOL_ALIGNMENT if at else 0)


def entry_registers(program: Program) -> int:
    """Registers a thread at kernel entry, as `__launch_bounds__` makes the compiler allocate them."""
    threads = program.threads * max(1, program.launch.ctas_per_sm)
    return min(248, REGISTERS // threads // 8 * 8)


def released_at_cluster_scope(program: Program) -> frozenset[str]:
    """Barriers that some arrival orders at cluster scope."""
    return frozenset(str(op.attrs["barrier"]) for op in program.ops if op.name == "arrive" and op.attrs.get("order") == "cluster")


def member_barriers(program: Program, role: Role, body: tuple[Stmt, ...]) -> frozenset[int]:
    """Ids of `arrive="member"` operations in front of which the member must meet.

    One thread arrives for all: that is enough for a slot that only the tensor core read. Where other threads have read or written the
    slot themselves since the member last met, they must meet first.
    """
    ring_views: dict[str, set[str]] = {}
    for op in program.ops:
        barrier = program.barriers.get(str(op.attrs.get("barrier") or ""))
        view = op.operands.get("view")
        if barrier is not None and view is not None and not isinstance(view, tuple) and isinstance(view.type, ViewT):
            ring_views.setdefault(barrier.pipeline, set()).add(view.type.view)
    found: set[int] = set()

    def scan(block: tuple[Stmt, ...], dirty: set[str]) -> set[str]:
        for s in block:
            if isinstance(s, For):
                dirty = scan(s.body, dirty) | dirty
                dirty = scan(s.body, dirty) | dirty
                continue
            if isinstance(s, If):
                dirty = scan(s.then, set(dirty)) | scan(s.orelse, set(dirty))
                continue
            op = op_of(s)
            if op is None:
                continue
            dirty = _touch(program, role, op, dirty)
            barrier = program.barriers.get(str(op.attrs.get("barrier") or ""))
            if op.name == "arrive" and barrier is not None and barrier.arrive == "member" and dirty & ring_views.get(barrier.pipeline, set()):
                found.add(op.id)
                dirty = set()
        return dirty

    scan(body, set())
    return frozenset(found)


def _touch(program: Program, role: Role, op: Op, dirty: set[str]) -> set[str]:
    if op.name == "sync" and str(op.attrs["barrier"]) in program.named and role.name in program.named[str(op.attrs["barrier"])].roles:
        return set()
    view = op.operands.get("view")
    if op.name in ("load", "store", "ldmatrix", "ld") and view is not None and not isinstance(view, tuple) and isinstance(view.type, ViewT):
        return dirty | {view.type.view}
    return dirty


def check_supported(program: Program) -> None:
    """Refuse what no part of this lowering can emit."""
    if program.target not in ("sm_80", "sm_89", "sm_90a"):
        not_lowered(f"the target {program.target or '(none)'}", program.span)
    for tmem in program.tmems.values():
        not_lowered("tensor memory", tmem.span)
    for barrier in program.barriers.values():
        if barrier.arrive == "mma":
            not_lowered('a barrier with arrive="mma"', barrier.span)

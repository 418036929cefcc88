"""What a program needs that its text does not state, as this lowering places it: addresses, register budgets, derived barriers."""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.webs import expressions
from cake_ir.derive import shared_memory as derived
from cake_ir.derive.member_meetings import idle_releases
from cake_ir.derive.named_ids import named_ids as derived_ids
from cake_ir.derive.sends import send_barriers
from cake_ir.derive.work_rings import BYTES as WORK_RING
from cake_ir.derive.work_rings import work_rings
from cake_ir.dtypes import DTYPES
from cake_ir.layout import ViewLayout
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Arrive, Issue, Touch
from cake_ir.program import Expr, For, If, Op, Program, Role, Stmt, View, op_of, statements
from cake_ir.targets import TARGETS
from cake_ir.types import SlotT, ViewT

TENSOR_MEMORY = "tensor memory"
"""What stands for tensor memory among the views that threads have touched; no view is called so."""


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
    work: dict[str, int]
    """Rings of `counter` schedulers that need one."""


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
    work = {}
    for name, ring in work_rings(program).items():
        if not ring.empty or ring.scheduler.cluster != (1, 1):
            work[name] = at
            at += WORK_RING
    return SharedMemory(pools, barriers, align, at + (align if wide else 0), work)


def released_at_cluster_scope(program: Program) -> frozenset[str]:
    """Barriers that some arrival, or what a peer sends, orders at cluster scope."""
    return frozenset(str(op.attrs["barrier"]) for op in program.ops if op.name == "arrive" and op.attrs.get("order") == "cluster") | frozenset(send_barriers(program))


def member_barriers(program: Program, role: Role, body: tuple[Stmt, ...]) -> frozenset[int]:
    """Ids of `arrive="member"` operations in front of which the member must meet.

    One thread arrives for all. That is enough for a slot that only the tensor core read, whose group all warps have waited for. Where
    threads have read or written the barrier's slots (or views that belong to no ring, or tensor memory: every warp moves its own lanes)
    themselves since the member last met, they must meet first. So they must where a path leads from the wait to the release without a product.
    """
    rings = view_rings(program)
    found: set[int] = set()

    def scan(block: tuple[Stmt, ...], dirty: frozenset[str]) -> frozenset[str]:
        for s in block:
            if isinstance(s, For):
                once = dirty | scan(s.body, dirty)
                dirty = once | scan(s.body, once) if once != dirty else once
            elif isinstance(s, If):
                dirty = scan(s.then, dirty) | scan(s.orelse, dirty)
            elif (op := op_of(s)) is not None:
                dirty = _after(program, role, op, dirty)
                if not any(isinstance(e, Arrive) for e in effects_of(op, program)):
                    continue
                barrier = program.barriers[str(op.attrs["barrier"])]
                if barrier.arrive == "member" and (op.id in idle_releases(program) or any(rings.get(v) in (None, barrier.pipeline) for v in dirty)):
                    found.add(op.id)
                    dirty = frozenset()
        return dirty

    scan(body, frozenset())
    return frozenset(found)


def view_rings(program: Program) -> dict[str, str]:
    """The ring that each view's slots belong to: that of the barrier it is loaded on, or of the slots it is indexed with."""
    found: dict[str, str] = {}
    for block in program.body:
        for s in statements(block.body):
            for e in expressions(s):
                for x in e.parts():
                    if x.op == "stage" and isinstance(x.type, ViewT) and isinstance(t := x.args[1].type, SlotT):
                        found.setdefault(x.type.view, t.ring)
    for op in program.ops:
        view, barrier = op.operands.get("view"), program.barriers.get(str(op.attrs.get("barrier")))
        if isinstance(view, Expr) and isinstance(view.type, ViewT) and barrier is not None:
            found[view.type.view] = barrier.pipeline
    return found


def _after(program: Program, role: Role, op: Op, dirty: frozenset[str]) -> frozenset[str]:
    """Views (and tensor memory) with accesses of the member's threads that are unordered after an operation."""
    if op.name == "sync" and str(op.attrs["barrier"]) in program.named and role.name in program.named[str(op.attrs["barrier"])].roles:
        return frozenset()
    touched = {t.operand for e in effects_of(op, program) for t in (e.touches if isinstance(e, Issue) else (e,)) if isinstance(t, Touch)
               and t.space == "smem" and t.proxy == "generic"}  # fmt: skip
    views = {x.type.view for name in touched if isinstance(x := op.operands.get(name), Expr) and isinstance(x.type, ViewT)}
    if any(isinstance(e, Issue) and e.engine in ("tmem_ld", "tmem_st") for e in effects_of(op, program)):
        views.add(TENSOR_MEMORY)
    return dirty | views


_RUNS = "a kernel that is to run accumulates in a fragment, with `.ldmatrix` operands fed by the same rings of copies"


def check_supported(program: Program) -> None:
    """Refuse what no part of this lowering can emit."""
    if program.target not in TARGETS:
        not_lowered(f"the target {program.target or '(none)'}", program.span)
    for s in program.schedulers.values():
        if s.kind == "clc":
            not_lowered("a scheduler of kind \"clc\"", s.span)
    for op in program.ops:
        if op.name == "mma" and op.attrs.get("ctas") == 2:
            not_lowered("an MMA of a pair of CTAs", op.spans.get("ctas", op.span), f"it can be verified and simulated; {_RUNS}")
        if op.name == "tma_gather":
            not_lowered("`view.tma_gather`", op.span, "it can be verified and simulated; `view.cp_async_rows` gathers rows on every target")
    for packed in (*program.views.values(), *program.tensors.values()):
        if packed.dtype is not None and DTYPES[packed.dtype].bits < 8:
            not_lowered(f"memory of {packed.dtype}, whose elements are narrower than a byte,", packed.span, f"it can be verified and simulated; {_RUNS}")
    for tmem in program.tmems.values():
        not_lowered("tensor memory", tmem.span, f"it can be verified and simulated; {_RUNS}")
    for barrier in program.barriers.values():
        if barrier.arrive == "mma":
            not_lowered('a barrier with arrive="mma"', barrier.span)

"""Synchronisation operations: waits, arrivals, named barriers, turns, fences, asynchronous groups, programmatic launch."""

from __future__ import annotations

from collections.abc import Callable

from cake_backend.cuda import mbarrier, tma, wgmma
from cake_backend.cuda.cluster import arrive_remote, cluster_sync, targets_of
from cake_backend.cuda.context import Context
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.flags import FENCE_PROXY_GLOBAL, FLAG_SIGNAL, FLAG_SPIN
from cake_backend.cuda.globals import pointer
from cake_backend.cuda.pins import flush, pin_places, pin_stages
from cake_backend.cuda.preamble import NAMED_ARRIVE, NAMED_ARRIVE_AT, NAMED_SYNC, NAMED_SYNC_AT, PDL_LAUNCH, PDL_WAIT
from cake_backend.cuda.rings import barrier_address, phase, position, slot_index
from cake_backend.cuda.scalars import factor, scalar
from cake_ir.derive.global_fences import stored_and_copied
from cake_ir.derive.sends import send_barriers
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue
from cake_ir.program import Expr, Op
from cake_ir.span import Span


def wait(ctx: Context, op: Op) -> None:
    """`lm.wait` on an mbarrier or a turn."""
    name = str(op.attrs["barrier"])
    if name in ctx.program.turns:
        turn_wait(ctx, name, op.span)
        return
    flush(ctx, op.span)
    barrier, stage = ctx.program.barriers[name], op.operands.get("stage")
    assert stage is None or isinstance(stage, Expr)
    stages = ctx.program.rings[barrier.pipeline].stages
    device = mbarrier.wait(report=ctx.report, cluster=name in ctx.released, sm80=not ctx.has("MBARRIER_TRY_WAIT"))
    parity = phase(ctx, stage, stages, barrier.primed) if stage is not None else "1u" if barrier.primed else "0u"
    args = [barrier_address(ctx, name, stage), parity]
    if ctx.report:
        number = list(ctx.program.barriers).index(name)
        role = list(ctx.program.roles).index(ctx.role.role.name)
        index, count = (slot_index(ctx, stage, stages), position(ctx, stage)) if stage is not None else ("0u", "0u")
        args += ["hang", f"{role}u", f"{number}u", index, count, f"(u32){ctx.role.tile}"]
    ctx.out.line(f"{ctx.use(device)}({', '.join(args)});")
    sends = send_barriers(ctx.program).get(name)
    if sends is not None:
        who = ([] if ctx.role.single else ["thread == 0"]) + ([f"{ctx.role.index} == 0"] if ctx.role.role.members > 1 else [])
        call = f"{ctx.use(mbarrier.EXPECT_TX)}({barrier_address(ctx, name, stage)}, {sends.bytes}u);"
        ctx.out.line(f"if ({' && '.join(who)}) {call}" if who else call)


def arrive(ctx: Context, op: Op) -> None:
    """`lm.arrive` on an mbarrier, in the kind that its declaration names, or on a turn."""
    name = str(op.attrs["barrier"])
    if name in ctx.program.turns:
        turn_arrive(ctx, name)
        return
    barrier, stage = ctx.program.barriers[name], op.operands.get("stage")
    assert stage is None or isinstance(stage, Expr)
    address = barrier_address(ctx, name, stage)
    kind = barrier.arrive
    if kind == "cp_async":
        ctx.out.line(f"{ctx.use(mbarrier.CP_ASYNC_ARRIVE)}({address});")
        return
    if kind not in ("warp", "member", "thread", "tx"):
        not_lowered(f'an arrival on a barrier with arrive="{kind}"', op.span)
    if op.id in ctx.role.fenced_releases:
        ctx.out.line(f"{ctx.use(tma.FENCE_PROXY)}();")
    if ctx.role.single:
        _arrive_alone(ctx, op, address, kind)
        return
    peers = targets_of(ctx, name) if barrier.scope == "cluster" else 1
    if kind == "member" and needs_member_barrier(ctx, op):
        member_sync(ctx, op.span)
    if kind == "warp":
        ctx.out.line("__syncwarp();")
    who = {"warp": "lane", "member": "thread", "thread": "", "tx": "thread"}[kind]  # beside the bytes of copies: one thread a member, whom nobody waits for
    if peers > 1:
        arrive_remote(ctx, op, address, who, peers)
        return
    call = f"{ctx.use(_local(ctx))}({address});"
    ctx.out.line(f"if ({who} == 0) {call}" if who else call)


def _local(ctx: Context) -> mbarrier.Device:
    return mbarrier.ARRIVE if ctx.has("MBARRIER_TX") else mbarrier.ARRIVE_SM80


def _arrive_alone(ctx: Context, op: Op, address: str, kind: str) -> None:
    """One elected thread runs the role: it arrives for every warp or thread that the count expects."""
    count = {"warp": ctx.role.warps, "thread": ctx.role.threads}.get(kind, 1)
    if ctx.program.barriers[str(op.attrs["barrier"])].scope == "cluster" and targets_of(ctx, str(op.attrs["barrier"])) > 1:
        for _ in range(count):
            arrive_remote(ctx, op, address, "", targets_of(ctx, str(op.attrs["barrier"])))
        return
    if count == 1:
        ctx.out.line(f"{ctx.use(_local(ctx))}({address});")
    else:
        ctx.out.line(f"{ctx.use(mbarrier.ARRIVE_MANY)}({address}, {count}u);")


def needs_member_barrier(ctx: Context, op: Op) -> bool:
    """Whether other threads' ordinary accesses of the slot are not ordered before the elected thread's arrive already."""
    return op.id in ctx.role.member_barriers


def member_sync(ctx: Context, span: Span) -> None:
    """A barrier over the threads of one member, on the ids kept for derived ones; one warp only converges."""
    if ctx.role.warps == 1:
        ctx.out.line("__syncwarp();")
        return
    _per_member(ctx, ctx.derived_ids(), NAMED_SYNC, ctx.role.threads)


# ------------------------------------------------------------------ named barriers and turns


def named_threads(ctx: Context, name: str) -> int:
    """Threads that meet at a named barrier."""
    barrier = ctx.program.named[name]
    roles = [ctx.program.roles[r] for r in barrier.roles]
    if barrier.per_member:
        return 32 * sum(r.member_warps for r in roles)
    return 32 * sum(r.warps for r in roles)


def named_sync(ctx: Context, name: str, span: Span) -> None:
    """`lm.sync`: a named barrier with its immediate id, or the cluster's."""
    if name not in ctx.program.named:
        cluster_sync(ctx, span)
        return
    if ctx.role.single:
        not_lowered("a named barrier in a role that one elected thread runs", span)
    threads, ids = named_threads(ctx, name), ctx.named_ids[name]
    if ctx.program.named[name].per_member:
        _per_member(ctx, ids, NAMED_SYNC, threads)
    else:
        ctx.out.line(f"{ctx.use(NAMED_SYNC)}<{ids[0]}, {threads}>();")


def _sync(ctx: Context, op: Op) -> None:
    """`lm.sync`, behind a fence where it releases to the copy engine what threads have read."""
    if op.id in ctx.role.fenced_releases:
        ctx.out.line(f"{ctx.use(tma.FENCE_PROXY)}();")
    named_sync(ctx, str(op.attrs["barrier"]), op.span)


def _per_member(ctx: Context, ids: tuple[int, ...], device: mbarrier.Device, threads: int) -> None:
    """The member's own id, as an immediate behind a uniform branch: a register id would reserve all sixteen."""
    name = ctx.use(device)
    if len(ids) == 1:
        ctx.out.line(f"{name}<{ids[0]}, {threads}>();")
        return
    parts = [f"if ({ctx.role.index} == {i}) {name}<{n}, {threads}>();" for i, n in enumerate(ids[:-1])]
    ctx.out.line(" else ".join([*parts, f"{name}<{ids[-1]}, {threads}>();"]))


MOST_IMMEDIATE = 2
"""Members up to which a turn's barrier is an immediate behind predicates: more would be a chain of branches, in every round of a hot loop."""


def turn_wait(ctx: Context, name: str, span: Span) -> None:
    """Block until it is this member's turn."""
    ids = ctx.named_ids[name]
    if len(ids) > MOST_IMMEDIATE:
        ctx.out.line(f"{ctx.use(NAMED_SYNC_AT)}({ids[0]} + {ctx.role.index}, {2 * ctx.role.threads});")
        return
    _per_member(ctx, ids, NAMED_SYNC, 2 * ctx.role.threads)


def turn_arrive(ctx: Context, name: str) -> None:
    """Pass the turn on to the next member."""
    ids = ctx.named_ids[name]
    if len(ids) > MOST_IMMEDIATE:
        following = f"{ctx.role.index} == {len(ids) - 1} ? {ids[0]} : {ids[1]} + {ctx.role.index}"
        ctx.out.line(f"{ctx.use(NAMED_ARRIVE_AT)}({following}, {2 * ctx.role.threads});")
        return
    _per_member(ctx, (*ids[1:], ids[0]), NAMED_ARRIVE, 2 * ctx.role.threads)


def prime_turns(ctx: Context) -> None:
    """At role entry the last member hands the first one its turn."""
    for name, turn in ctx.program.turns.items():
        if turn.role == ctx.role.role.name:
            last = ctx.role.role.members - 1
            ctx.out.line(f"if ({ctx.role.index} == {last}) {ctx.use(NAMED_ARRIVE)}<{ctx.named_ids[name][0]}, {2 * ctx.role.threads}>();")


def drain_turns(ctx: Context) -> None:
    """After the role's body the first member takes the token that is left over."""
    for name, turn in ctx.program.turns.items():
        if turn.role == ctx.role.role.name:
            ctx.out.line(f"if ({ctx.role.index} == 0) {ctx.use(NAMED_SYNC)}<{ctx.named_ids[name][0]}, {2 * ctx.role.threads}>();")


# ------------------------------------------------------------------ fences and groups


def elected(ctx: Context, text: str) -> str:
    """A statement by the member's one issuing thread."""
    return text if ctx.role.single else f"if (thread == 0) {text}"


def flag(ctx: Context, op: Op) -> None:
    """`lm.signal` and `lm.spin`: one thread a member, which the others meet before it releases or after it has acquired; alone in a role that only issues."""
    i, value = op.operands["i"], op.operands["value"]
    assert isinstance(i, Expr) and isinstance(value, Expr)
    word = f"{pointer(ctx, str(op.attrs['flags']))} + {factor(ctx, i)}"
    if op.name == "signal":
        if not ctx.role.single:
            member_sync(ctx, op.span)
        ctx.out.line(elected(ctx, f"{ctx.use(FLAG_SIGNAL)}({word}, {scalar(ctx, value)});"))
        return
    flush(ctx, op.span)
    ctx.out.line(elected(ctx, f"{ctx.use(FLAG_SPIN)}({word}, {scalar(ctx, value)});"))
    if not ctx.role.single:
        member_sync(ctx, op.span)
    if ctx.has("TMA") and any(isinstance(e, Issue) and e.engine in ("tma", "bulk") for o in ctx.program.ops for e in effects_of(o, ctx.program)):
        ctx.out.line(f"{ctx.use(FENCE_PROXY_GLOBAL)}();")


def _fence_proxy(ctx: Context, op: Op) -> None:
    ctx.out.line(f"{ctx.use(tma.FENCE_PROXY)}();")
    if stored_and_copied(ctx.program):  # then the fence has to cover global memory too
        ctx.out.line(f"{ctx.use(FENCE_PROXY_GLOBAL)}();")



def _mma_wait(ctx: Context, op: Op) -> None:
    if not ctx.has("WGMMA") or not ctx.role.inflight.accumulators:
        return  # warp-level MMAs are synchronous: nothing to wait for
    pending = int(op.attrs["pending"] or 0)  # type: ignore[call-overload]  # an int option
    ctx.out.line(f"{ctx.use(wgmma.WAIT)}<{pending}>();")
    flying = ctx.role.flying
    retired, ctx.role.flying = flying[: max(0, len(flying) - pending)], flying[max(0, len(flying) - pending) :]
    pin_stages(ctx, retired)
    pin_places(ctx, ctx.role.inflight.after.get(op.id, ()))


def _store_wait(ctx: Context, op: Op) -> None:
    device = tma.WAIT_READ if op.attrs.get("read", True) else tma.WAIT
    ctx.out.line(elected(ctx, f"{ctx.use(device)}<{op.attrs['pending']}>();"))


def _cp_commit(ctx: Context, op: Op) -> None:
    ctx.out.line(f"{ctx.use(tma.CP_COMMIT)}();")


def _cp_wait(ctx: Context, op: Op) -> None:
    ctx.out.line(f"{ctx.use(tma.CP_WAIT)}<{op.attrs['pending']}>();")


HANDLERS: dict[str, Callable[[Context, Op], None]] = {
    "wait": wait,
    "arrive": arrive,
    "sync": _sync,
    "fence_proxy": _fence_proxy,
    "mma_wait": _mma_wait,
    "store_wait": _store_wait,
    "cp_commit": _cp_commit,
    "cp_wait": _cp_wait,
    "cluster_sync": lambda ctx, op: cluster_sync(ctx, op.span),
    "signal": flag,
    "spin": flag,
    "pdl_wait": lambda ctx, op: ctx.out.line(f"{ctx.use(PDL_WAIT)}();"),
    "pdl_launch": lambda ctx, op: ctx.out.line(f"{ctx.use(PDL_LAUNCH)}();"),
}

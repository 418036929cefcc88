"""Thread block clusters: who shares a multicast, remote arrivals, the cluster's barrier."""

from __future__ import annotations

from cake_backend.cuda import mbarrier
from cake_backend.cuda.context import Context
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.preamble import CLUSTER_SYNC
from cake_ir.program import For, If, Op, Stmt, op_of
from cake_ir.span import Span


def size(ctx: Context) -> int:
    """CTAs in a cluster."""
    x, y = ctx.program.launch.cluster
    return x * y


def cluster_sync(ctx: Context, span: Span) -> None:
    """Meet all threads of the cluster."""
    if ctx.role.single:
        not_lowered("a cluster barrier in a role that one elected thread runs", span)
    ctx.out.line(f"{ctx.use(CLUSTER_SYNC)}();" if size(ctx) > 1 else "__syncthreads();")


def axis_of(ctx: Context, multicast: str) -> int:
    """0 or 1: the cluster axis that `multicast=` names, through the scheduler's axis names."""
    for scheduler in ctx.program.schedulers.values():
        if multicast in scheduler.names:
            return scheduler.names.index(multicast)
    return {"m": 0, "x": 0, "n": 1, "y": 1}.get(multicast, 0)


def multicast_axes(ctx: Context, barrier: str) -> frozenset[int]:
    """Cluster axes along which the loads that an empty barrier guards are multicast.

    An empty wait guards the loads after it up to the next empty wait on the same ring, in the same role.
    """
    ring = ctx.program.barriers[barrier].pipeline
    found: set[int] = set()

    def scan(body: tuple[Stmt, ...], guarded: bool) -> bool:
        for s in body:
            if isinstance(s, For):
                guarded = scan(s.body, guarded)
            elif isinstance(s, If):
                guarded = scan(s.orelse, scan(s.then, guarded))
            elif (op := op_of(s)) is not None:
                name = str(op.attrs.get("barrier") or "")
                known = ctx.program.barriers.get(name)
                if op.name == "wait" and known is not None and known.pipeline == ring and known.primed:
                    guarded = name == barrier
                elif op.name == "tma_load" and guarded and op.attrs.get("multicast"):
                    found.add(axis_of(ctx, str(op.attrs["multicast"])))
        return guarded

    for block in ctx.program.body:
        scan(block.body, False)
    return frozenset(found)


def targets_of(ctx: Context, barrier: str) -> int:
    """CTAs whose producers wait on this barrier before they write this CTA's slot: the arrivals go to all of them."""
    axes = multicast_axes(ctx, barrier)
    x, y = ctx.program.launch.cluster
    if axes == {0, 1}:
        return x + y - 1
    return x if axes == {0} else y if axes == {1} else 1


def arrive_remote(ctx: Context, op: Op, address: str, who: str, peers: int) -> None:
    """Lane (or thread) i of the arriving group signals the i-th CTA of the multicast group: one predicated instruction, no loop."""
    x, y = ctx.program.launch.cluster
    axes = multicast_axes(ctx, str(op.attrs["barrier"]))
    device = mbarrier.ARRIVE_REMOTE_RELEASE if op.attrs.get("order") == "cluster" else mbarrier.ARRIVE_REMOTE
    if axes == {0, 1} and x > 1 and y > 1:
        # The ranks with my n, then those with my m but another n.
        peer = f"{who} < {x} ? {who} + {x} * (cluster_cta / {x}u) : ({who} - {x} + (({who} - {x}) >= cluster_cta / {x}u)) * {x} + cluster_cta % {x}u"
    elif axes == {0}:
        peer = who if y == 1 else f"{who} + {x} * (cluster_cta / {x}u)"
    else:
        peer = who if x == 1 else f"{who} * {x} + cluster_cta % {x}u"
    ctx.out.line(f"if ({who} < {peers}) {ctx.use(device)}({address}, {peer});")


def multicast_mask(ctx: Context, axis: int) -> str:
    """C text of the CTA mask of a multicast along a cluster axis."""
    x, y = ctx.program.launch.cluster
    if axis == 0:
        base = (1 << x) - 1
        return str(base) if y == 1 else f"(u16)({base} << ({x} * (cluster_cta / {x}u)))"
    base = sum(1 << (x * i) for i in range(y))
    return str(base) if x == 1 else f"(u16)({base} << (cluster_cta % {x}u))"


def slice_index(ctx: Context, axis: int) -> str:
    """C text of this CTA's number along a cluster axis."""
    x, y = ctx.program.launch.cluster
    if axis == 0:
        return "cluster_cta" if y == 1 else f"(cluster_cta % {x}u)"
    return "cluster_cta" if x == 1 else f"(cluster_cta / {x}u)"

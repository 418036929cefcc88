"""Thread block clusters: who shares a multicast, remote arrivals, the cluster's barrier."""

from __future__ import annotations

from cake_backend.cuda import mbarrier
from cake_backend.cuda.context import Context
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.preamble import CLUSTER_SYNC
from cake_ir.derive.cluster_meetings import senders
from cake_ir.derive.clusters import arrival_targets, axis_of, multicast_axes
from cake_ir.program import Op
from cake_ir.span import Span


def size(ctx: Context) -> int:
    """CTAs in a cluster."""
    x, y = ctx.program.launch.cluster
    return x * y


def late_senders(ctx: Context) -> frozenset[str]:
    """The roles that wait for the cluster where they start, if the others need not and nobody meets at the end; else none.

    Measured on an H200: of 20 tiny GEMMs that send, 18 took 3 to 35 % less (1.6 to 4 us), one as long, and one 20 to 30 % more, which a second run on another
    chip did not show; two fp8 GEMMs took 0.4 us of 18 and 0.7 of 13 less.
    """
    return senders(ctx.program) if size(ctx) > 1 else frozenset()


def cluster_sync(ctx: Context, span: Span) -> None:
    """Meet all threads of the cluster."""
    if ctx.role.single:
        not_lowered("a cluster barrier in a role that one elected thread runs", span)
    ctx.out.line(f"{ctx.use(CLUSTER_SYNC)}();" if size(ctx) > 1 else "__syncthreads();")


def targets_of(ctx: Context, barrier: str) -> int:
    """CTAs at which an arrival counts: those that write the slot by multicast, or this one alone."""
    return len(arrival_targets(ctx.program, barrier, 0))


def arrive_remote(ctx: Context, op: Op, address: str, who: str, peers: int) -> None:
    """Lane (or thread) i of the arriving group signals the i-th CTA of the multicast group: one predicated instruction, no loop.

    Without `who` every thread that comes here arrives at each of them by itself.
    """
    if not who:
        with ctx.out.unrolled("peer_", peers):
            ctx.out.line(_remote(ctx, op, address, "(u32)peer_", peers))
        return
    ctx.out.line(f"if ({who} < {peers}) {_remote(ctx, op, address, who, peers)}")


def _remote(ctx: Context, op: Op, address: str, who: str, peers: int) -> str:
    """The arrival at CTA number `who` of the multicast group."""
    x, y = ctx.program.launch.cluster
    axes = multicast_axes(ctx.program, str(op.attrs["barrier"])) or ({0, 1} if peers == x * y else set())
    device = mbarrier.ARRIVE_REMOTE_RELEASE if op.attrs.get("order") == "cluster" else mbarrier.ARRIVE_REMOTE
    if peers == x * y:
        peer = who
    elif axes == {0, 1} and x > 1 and y > 1:
        # The ranks with my n, then those with my m but another n.
        peer = f"{who} < {x} ? {who} + {x} * (cluster_cta / {x}u) : ({who} - {x} + (({who} - {x}) >= cluster_cta / {x}u)) * {x} + cluster_cta % {x}u"
    elif axes == {0}:
        peer = who if y == 1 else f"{who} + {x} * (cluster_cta / {x}u)"
    else:
        peer = who if x == 1 else f"{who} * {x} + cluster_cta % {x}u"
    return f"{ctx.use(device)}({address}, {peer});"


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


__all__ = ["axis_of", "cluster_sync", "multicast_mask", "size", "slice_index", "targets_of"]

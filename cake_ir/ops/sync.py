"""Synchronisation: mbarriers, named barriers, fences, asynchronous groups, clusters, programmatic launch, flags."""

from __future__ import annotations

from cake_ir.ops.effects import (
    Arrive,
    ClusterSync,
    Commit,
    Drain,
    Effect,
    FenceProxy,
    Flag,
    GridDependency,
    Sync,
    Turn,
    Wait,
)  # fmt: skip
from cake_ir.ops.spec import Call, OpSpec, P, always
from cake_ir.program import Op, Program
from cake_ir.types import NONE, ScalarT, Type


def _wait(op: Op, program: Program) -> tuple[Effect, ...]:
    return (Turn("wait"),) if op.attrs["barrier"] in program.turns else (Wait(),)


def _arrive(op: Op, program: Program) -> tuple[Effect, ...]:
    return (Turn("arrive"),) if op.attrs["barrier"] in program.turns else (Arrive(),)


def _sync(op: Op, program: Program) -> tuple[Effect, ...]:
    return (Sync(),) if op.attrs["barrier"] in program.named else (ClusterSync(),)


def _flag(call: Call) -> Type:
    tensor, value = call.scope.declared(str(call.attrs["flags"])), call.type_of("value")
    if tensor.dtype != "i32" or tensor.rank != 1:
        call.fault("D003", f"flags are a 1-D tensor of i32, `{tensor.name}` is {tensor.rank}-D {tensor.dtype or 'without a dtype'}", "flags",
                   help=f"declare it `{tensor.name}: LM.gmem1d[LM.i32].zeroed`", expected="i32", found=tensor.dtype)  # fmt: skip
    if not isinstance(value, ScalarT) or value.dtype != "i32":
        call.fault("D003", f"a flag holds an i32, found {value}", "value")
    return NONE


SPECS = (
    OpSpec("wait", "sync", (P("barrier", "barrier|turns"), P("stage", "slot", None)), effects=_wait,
           doc="Block until the phase of `barrier` that belongs to slot `stage` is complete; makes what its producers did visible."),
    OpSpec("arrive", "sync", (P("barrier", "barrier|turns"), P("stage", "slot", None), P("order", "str", None)), effects=_arrive,
           doc="Release: this member's earlier accesses are done. Arrives as the barrier's declaration says (warp, member, thread)."),
    OpSpec("sync", "sync", (P("barrier", "named"),), effects=_sync, doc="Meet all participants of a named barrier."),
    OpSpec("fence_proxy", "sync", (P("scope", "str", "cta"),), effects=always(FenceProxy()), needs="TMA",
           doc="Order this thread's earlier generic writes to shared memory before later async-proxy reads of them."),
    OpSpec("mma_wait", "sync", (P("pending", "int", 0),), effects=always(Drain("wgmma")),
           doc="At most `pending` MMA groups of this member stay in flight; no operation where MMAs are synchronous."),
    OpSpec("commit", "sync", (P("barrier", "barrier"), P("stage", "slot", None)), effects=always(Commit("tcgen05")), needs="TCGEN05",
           doc="Arrive on `barrier` once all earlier tcgen05 operations of the issuing thread have completed."),
    OpSpec("tmem_wait", "sync", (P("what", "str"),),
           effects=lambda op, program: (Drain("tmem_st" if op.attrs["what"] == "st" else "tmem_ld"),), needs="TCGEN05",
           doc="TMEM loads (`ld`) or stores (`st`) of this warp are complete."),
    OpSpec("cp_commit", "sync", (), effects=always(Commit("cp_async")), doc="Close this thread's open group of cp.async copies."),
    OpSpec("cp_wait", "sync", (P("pending", "int"),), effects=always(Drain("cp_async")),
           doc="At most `pending` of this thread's cp.async groups stay in flight; other threads need `lm.sync` after it."),
    OpSpec("store_wait", "sync", (P("pending", "int"), P("read", "bool", True)),
           effects=lambda op, program: (Drain("bulk", read=bool(op.attrs["read"])),), needs="TMA",
           doc="At most `pending` bulk stores of the issuing thread stay in flight (`read`: their source may be rewritten)."),
    OpSpec("cluster_sync", "sync", (), effects=always(ClusterSync()), needs="CLUSTER", doc="Meet all threads of the cluster."),
    OpSpec("pdl_wait", "sync", (), effects=always(GridDependency("wait")), needs="PDL",
           doc="Wait for the upstream kernel of a programmatic dependent launch; its data may be read from here on."),
    OpSpec("pdl_launch", "sync", (), effects=always(GridDependency("launch")), needs="PDL",
           doc="Let the dependent grid start; gives no visibility."),
    OpSpec("signal", "sync", (P("flags", "gmem"), P("i", "scalar"), P("value", "scalar")), _flag, always(Flag("signal")),
           doc="Once all warps of the member have come, one thread writes a word of global memory and releases what they did to other CTAs of this launch."),
    OpSpec("spin", "sync", (P("flags", "gmem"), P("i", "scalar"), P("value", "scalar")), _flag, always(Flag("spin")),
           doc="Poll a word of global memory until it is at least `value`, acquiring what its signaller released."),
)  # fmt: skip

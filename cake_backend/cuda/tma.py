"""Copy-engine instructions: tensor-map loads, stores and reductions, bulk copies, bulk groups, cp.async."""

from __future__ import annotations

from cake_backend.cuda.preamble import Device, asm_call

PREFETCH_MAP = asm_call("prefetch_map", "const TensorMap* map", "prefetch.tensormap [%0];", '"l"(map)')
FENCE_PROXY = asm_call("fence_proxy_async", "", "fence.proxy.async.shared::cta;", "")
COMMIT = asm_call("bulk_commit", "", "cp.async.bulk.commit_group;", "")
WAIT_READ = asm_call("bulk_wait_read", "", "cp.async.bulk.wait_group.read %0;", '"n"(N)', template="template <int N>")
WAIT = asm_call("bulk_wait", "", "cp.async.bulk.wait_group %0;", '"n"(N)', template="template <int N>")

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
"""What a bulk reduction may do to the destination."""

_AXES = "xyzuv"


def _coords(rank: int, first: int) -> tuple[str, str, str]:
    """Parameters, asm operands and the PTX vector of `rank` coordinates whose first operand is `%first`."""
    axes = _AXES[:rank]
    return (
        ", ".join(f"int {a}" for a in axes),
        ", ".join(f'"r"({a})' for a in axes),
        "{" + ", ".join(f"%{first + i}" for i in range(rank)) + "}",
    )


def load(rank: int, *, multicast: bool = False, hint: bool = False) -> Device:
    """A box of a tensor map into shared memory, counted on an mbarrier; `multicast` to the CTAs of a mask, `hint` with an L2 policy."""
    params, operands, vector = _coords(rank, 2)
    name = f"tma_load_{rank}d" + ("_multicast" if multicast else "") + ("_hint" if hint else "")
    n = 2 + rank
    ptx = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
    ptx += ".multicast::cluster" if multicast else ""
    ptx += ".L2::cache_hint" if hint else ""
    ptx += f" [%0], [%1, {vector}], [%{n}]"
    extra, values = "", ""
    if multicast:
        n += 1
        ptx, extra, values = ptx + f", %{n}", extra + ", u16 ctas", values + ', "h"(ctas)'
    if hint:
        n += 1
        ptx, extra, values = ptx + f", %{n}", extra + ", u64 policy", values + ', "l"(policy)'
    return asm_call(name, f"u32 dst, const TensorMap* map, {params}, u32 bar{extra}", ptx + ";", f'"r"(dst), "l"(map), {operands}, "r"(bar){values}')


def prefetch(rank: int) -> Device:
    """A box of a tensor map into the second-level cache."""
    params, operands, vector = _coords(rank, 1)
    ptx = f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global [%0, {vector}];"
    return asm_call(f"tma_prefetch_{rank}d", f"const TensorMap* map, {params}", ptx, f'"l"(map), {operands}')


def store(rank: int) -> Device:
    """A box of shared memory to a tensor map, clipped at its edges, in the open bulk group."""
    params, operands, vector = _coords(rank, 2)
    return asm_call(
        f"tma_store_{rank}d",
        f"const TensorMap* map, u32 src, {params}",
        f"cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%0, {vector}], [%1];",
        f'"l"(map), "r"(src), {operands}',
    )


def reduce(rank: int, op: str) -> Device:
    """As `store`, combining with what is there by `op` of `REDUCTIONS`."""
    params, operands, vector = _coords(rank, 2)
    return asm_call(
        f"tma_reduce_{op}_{rank}d",
        f"const TensorMap* map, u32 src, {params}",
        f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.bulk_group [%0, {vector}], [%1];",
        f'"l"(map), "r"(src), {operands}',
    )


BULK_LOAD = asm_call(
    "bulk_load",
    "u32 dst, const void* src, u32 bytes, u32 bar",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];",
    '"r"(dst), "l"(src), "r"(bytes), "r"(bar)',
)
BULK_STORE = asm_call(
    "bulk_store",
    "void* dst, u32 src, u32 bytes",
    "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;",
    '"l"(dst), "r"(src), "r"(bytes)',
)

EVICT_POLICIES = {"keep": "evict_last", "stream": "evict_first"}
"""L2 eviction priority by the language's `cache=` value."""


def policy(cache: str) -> Device:
    """An L2 policy word for `cache` of `EVICT_POLICIES`."""
    priority = EVICT_POLICIES[cache]
    return Device(
        f"policy_{priority}",
        f"""
DEVICE u64 policy_{priority}() {{
  u64 policy;
  asm volatile("createpolicy.fractional.L2::{priority}.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}}""",
    )


CP_ASYNC = asm_call(
    "cp_async_16",
    "u32 dst, const void* src, u32 bytes",
    "cp.async.cg.shared.global [%0], [%1], 16, %2;",
    '"r"(dst), "l"(src), "r"(bytes)',
)
"""16 bytes by one thread; `bytes` (0..16) come from memory, the rest is zero."""

CP_COMMIT = asm_call("cp_async_commit", "", "cp.async.commit_group;", "")
CP_WAIT = asm_call("cp_async_wait", "", "cp.async.wait_group %0;", '"n"(N)', template="template <int N>")

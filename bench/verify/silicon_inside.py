"""Disturbances inside a kernel, put into its generated text for the experiment on silicon: what a device may do at its worst, done at will.

A run switches them on by name. Each is something that a right schedule cannot notice:

- `smudge` fills part of a copy's destination with NaN when the copy is issued, as if the first bytes had landed at once: whoever still reads
  the slot, or reads it before the copy is there, reads NaN.
- `prefetches` and `stores` put work into the copy engine in front of every third store or so: the bytes leave shared memory late, so whoever
  writes them again before the store was waited for changes what is stored. The ones behind are let through, so that their thread goes on.
- `late loads` does the same in front of loads, now and then: they land late.
- `queue` puts stores that conflict on one bank in front of the kernel's own stores to shared memory, which then wait in the queue while the
  threads go on: without a fence the copy engine and the tensor cores read old words (docs/hardware.md, HW070).
- `lag` lets clusters start up to 131 us late, so that their order is another.
- `crowd`, in kernels that were built for it, puts products of a warpgroup's own in front of each of its groups: the group is still reading its slots
  when the text goes on. They read whatever lies in shared memory, and nobody uses what comes out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SWITCHES = {"smudge": 1, "prefetches": 2, "stores": 4, "late loads": 8, "queue": 16, "lag": 32, "crowd": 64}
"""Bits of the second word of the seed constant; the bits from 8 on are random."""

SCRATCH_BYTES = 4096
MOST_SHARED = 227 * 1024
"""What a block may have: a kernel that leaves no room for the scratch has no `queue`."""

_SINK_BYTES = 4 << 20
_ISSUED = 6
_PREFETCH_BYTES = 256 << 10
_STORES = 12
_PRODUCTS = 16
_MOST_STORED = 8192

_TEXT = """
static __device__ u32 cake_sink[SINK_WORDS];
DEVICE u32 cake_smudge(u32 dst, u32 bytes) {
  if (SWITCHED & 1u) {  // in each row of 128 bytes the chunk that the last step of a product reads, exchanged as the widest swizzle does
    const u32 rows = bytes < 128u ? 1u : bytes > 2048u ? 16u : bytes >> 7;
    #pragma unroll 1
    for (u32 r = 0; r < rows; ++r)
      asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(dst + r * 128u + (bytes < 128u ? 0u : ((r & 7u) ^ 7u) << 4)), "r"(0x7fff7fffu) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  return dst;
}
DEVICE void cake_prefetches(u32 count) {
  const u32 from = cake_mix(SWITCHED ^ blockIdx.x) % (SINK_BYTESu / PREFETCHu);
  #pragma unroll 1
  for (u32 i = 0; i < count; ++i)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"((const u8*)cake_sink + (from + i) % (SINK_BYTESu / PREFETCHu) * PREFETCHu), "r"(PREFETCHu) : "memory");
}
DEVICE void cake_clog(u32 src, u32 bytes) {
  u32 clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
  if (cake_mix(clock ^ src ^ SWITCHED) % 3u) return;
  if (SWITCHED & 2u) cake_prefetches(ISSUEDu);
  if (SWITCHED & 4u) {
    #pragma unroll 1
    for (u32 i = 0; i < STORESu; ++i)
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"((u8*)cake_sink + (blockIdx.x * STORESu + i) % (SINK_BYTESu / MOST_STOREDu) * MOST_STOREDu), "r"(src), "r"(bytes > MOST_STOREDu ? MOST_STOREDu : bytes) : "memory");
  }
}
DEVICE void cake_late(u32 dst) {
  u32 clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
  if ((SWITCHED & 8u) && (cake_mix(clock ^ dst ^ SWITCHED) & 3u) == 0u) cake_prefetches(1u);
}
DEVICE void cake_lag() {
  u32 cluster;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(cluster));
  const u32 draw = cake_mix(SWITCHED ^ cluster * 0x9e3779b1u);
  if ((SWITCHED & 32u) && (draw >> 31)) asm volatile("nanosleep.u32 %0;" :: "r"(draw & 0x1ffffu) : "memory");
}
DEVICE void cake_queue() {
  QUEUE
}
DEVICE void cake_crowd(u32* d, u32 from) {
  if (SWITCHED & 64u) {
    const u64 both = 0x4000004000010000ull | (from & 0x3ffffu) >> 4;
    #pragma unroll
    for (int i = 0; i < 64; ++i) d[i] = 0u;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    #pragma unroll
    for (int i = 0; i < PRODUCTS; ++i)
      asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16 PLACES, %64, %65, 1, 1, 1, 0, 0;" : RESULTS : "l"(both + 2u * (i & 3)), "l"(both + 2u * (i & 3)) : "memory");
  }
}
DEVICE void cake_spare(const u32* d) {  // an assembler that sees no use of a product leaves it out
  if (SWITCHED & 64u) {
    u32 all = 0u;
    #pragma unroll
    for (int i = 0; i < 64; ++i) all ^= d[i];
    if (all == 0x9e3779b1u) cake_sink[0] = all;
  }
}
"""
_QUEUE = """__shared__ __align__(128) u32 scratch[SCRATCH_WORDS];
  if (SWITCHED & 16u)
    for (u32 i = 0; i < 16u; ++i) asm volatile("red.shared.add.u32 [%0], %1;" :: "r"((u32)__cvta_generic_to_shared(scratch) + (threadIdx.x & 31u) * 128u + i * 4u), "r"(i) : "memory");"""

_LOADS = re.compile(r"\b(tma_load_\dd(?:_hint)?)\((.*?), &(\w+),")
_STORES_OF_MAPS = re.compile(r"^(DEVICE void tma_(?:store|reduce)_\w+\(const TensorMap\* map, u32 src,[^)]*\) \{)", re.M)
_ANY_LOAD = re.compile(r"^(DEVICE void (?:tma_load_\w+|bulk_load)\(u32 dst,[^)]*\) \{)", re.M)
_BULK_LOAD = re.compile(r"^(DEVICE void bulk_load\(u32 dst, const void\* src, u32 bytes, u32 bar\) \{)", re.M)
_ROWS = re.compile(r"^(DEVICE void cp_async_16\(u32 dst, const void\* src, u32 bytes\) \{)", re.M)
_GROUP = re.compile(r"^( *)wgmma_fence\(\);.*$", re.M)
_ALL_DONE = re.compile(r"^ *wgmma_wait<0>\(\);.*$", re.M)
_BULK_STORE = re.compile(r"^(DEVICE void bulk_store\(void\* dst, u32 src, u32 bytes\) \{)", re.M)
_TO_SHARED = re.compile(r"^(DEVICE void (?:store_shared|stmatrix)\w*\([^)]*\) \{)", re.M)
_ENTRY = re.compile(r"(\bpool = [^;]*;\n)")


def definitions(word: str, room: bool) -> str:
    """The functions, which read their switches from `word`; without room for the scratch `queue` does nothing."""
    text = _TEXT.replace("QUEUE", _QUEUE if room else "")
    values = {
        "SWITCHED": word, "SINK_WORDS": _SINK_BYTES // 4, "SINK_BYTES": _SINK_BYTES, "PREFETCH": _PREFETCH_BYTES, "ISSUED": _ISSUED,
        "MOST_STORED": _MOST_STORED, "STORES": _STORES, "SCRATCH_WORDS": SCRATCH_BYTES // 4, "PRODUCTS": _PRODUCTS,
        "PLACES": "{" + ", ".join(f"%{i}" for i in range(64)) + "}", "RESULTS": ", ".join(f'"+r"(d[{i}])' for i in range(64)),
    }  # fmt: skip
    for name, value in values.items():
        text = re.sub(rf"\b{name}(?=u?\b)", str(value), text)
    return text


def disturbed(head: str, kernel: str, boxes: Mapping[str, int], crowd: bool = False) -> tuple[str, str]:
    """Helpers and kernel with calls of the disturbances; `boxes` has the bytes of a box for every tensor map by parameter. `crowd` costs 64 registers.

    Copies that go to several CTAs are left alone: their own shared memory need not be among the destinations.
    """
    smallest = min(boxes.values(), default=128)
    head = _STORES_OF_MAPS.sub(rf"\1 cake_clog(src, {smallest}u);", head)
    head = _BULK_STORE.sub(r"\1 cake_clog(src, bytes);", head)
    head = _BULK_LOAD.sub(r"\1 cake_smudge(dst, bytes);", head)
    head = _ROWS.sub(r"\1 cake_smudge(dst, 16u);", head)
    head = _ANY_LOAD.sub(r"\1 cake_late(dst);", head)
    head = _TO_SHARED.sub(r"\1 cake_queue();", head)
    kernel = _LOADS.sub(lambda m: f"{m[1]}(cake_smudge({m[2]}, {boxes[m[3]]}u), &{m[3]},", kernel)
    if crowd:
        kernel = _ENTRY.sub(r"\1  u32 cake_products[64] = {};\n", kernel, count=1)
        kernel = _GROUP.sub(r"\g<0>\n\1cake_crowd(cake_products, pool);\n\1wgmma_fence();", kernel)
        kernel = _ALL_DONE.sub(r"\g<0>\n    cake_spare(cake_products);", kernel)
    return head, _ENTRY.sub(r"\1  cake_lag();\n", kernel, count=1)

"""HW041: threads, or the next copy, overwrite what a bulk store was told to store, with and without its wait, and with work ahead of it in the copy engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW041"
ASKS = "a bulk store of 8 KiB whose source is overwritten at once, by threads or by a copy: does the old or the new get stored, also where the copy engine has other work first"
ROUNDS, LAUNCHES = 64, 10
AHEAD = ("nothing ahead", "prefetches ahead", "stores ahead")
CASES = tuple(f"{end}, {by}, {ahead}" for end in ("no wait", "wait for the reads") for by in ("threads", "a copy") for ahead in AHEAD)

SOURCE = r"""
KERNEL rewrite(u32* out, u8* sink, const u32* other, u64* cycles, int ahead, int copies, int waits) {
  const u32 base = pool(), bar = base + 8192u, t = threadIdx.x;
  if (t == 0) { mb_init(bar, 1u); fence_init(); }
  __syncthreads();
  for (u32 i = 0; i < 64u; ++i) {
    for (u32 j = 0; j < 16u; ++j) st(base + (j * 128u + t) * 4u, i + 1u);
    fence_async(); sync(1, 128);
    if (t == 0) {
      if (ahead == 1)
        for (u32 j = 0; j < 2u; ++j) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(sink + ((blockIdx.x + j) & 15u) * 262144u), "r"(262144u) : "memory");
      if (ahead == 2)
        for (u32 j = 0; j < 12u; ++j) bulk_store(sink + ((blockIdx.x * 12u + j) & 511u) * 8192u, base, 8192u);
      const long long start = clock64();
      bulk_store(out + ((u64)blockIdx.x * 64u + i) * 2048u, base, 8192u); bulk_commit();
      if (waits) { bulk_wait_read(); atomicAdd(cycles, (u64)(clock64() - start)); }
      if (copies) { mb_expect(bar, 8192u); bulk_load(base, other, 8192u, bar); mb_wait(bar, i & 1u); }
    }
    sync(1, 128);
  }
  if (t == 0) bulk_wait();
}
KERNEL check(const u32* out, u32* wrong) {
  u32 bad = 0;
  for (u32 i = threadIdx.x; i < 64u * 2048u; i += blockDim.x) bad += out[(u64)blockIdx.x * 64u * 2048u + i] != i / 2048u + 1u;
  if (bad) atomicAdd(wrong, bad);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    end, by, ahead = case.split(", ")
    words = ROUNDS * 2048
    out, sink = Memory(np.zeros(bench.sms * words, np.uint32)), Memory(np.zeros(4 << 20, np.uint8))
    other, cycles, wrong = Memory(np.full(2048, 0xFFFFFFFF, np.uint32)), Memory(np.zeros(1, np.uint64)), Memory(np.zeros(1, np.uint32))
    for _ in range(LAUNCHES):
        bench.run("rewrite", bench.sms, 128, (out, sink, other, cycles, AHEAD.index(ahead), int(by == "a copy"), int(end != "no wait")), smem=16384)
        bench.run("check", bench.sms, 256, (out, wrong))
    told = {} if end == "no wait" else {"cycles_until_it_was_read": int(cycles.read()[0]) // (LAUNCHES * bench.sms * ROUNDS)}
    return {"wrong_words": int(wrong.read()[0]), "of": LAUNCHES * bench.sms * words, **told}

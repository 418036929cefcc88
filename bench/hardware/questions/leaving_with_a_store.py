"""HW041: a CTA leaves while a bulk store still reads its shared memory; does the next CTA's data get stored?"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory
from cake_backend.judge.device.driver import call

CONTRACT = "HW041"
ASKS = "CTAs store 64 KiB and leave without waiting, others take their place and overwrite shared memory at once"
CASES = ("no wait", "wait for the reads", "no wait, small and many", "wait for the reads, small and many", "no wait, memory busy", "no wait, small and many, memory busy",
         "no wait, prefetches ahead", "wait for the reads, prefetches ahead")  # fmt: skip

SOURCE = r"""
KERNEL leave(u32* out, u8* sink, int words, int waits, int ahead) {
  const u32 base = pool(), value = blockIdx.x + 1u;
  for (u32 i = threadIdx.x; i < (u32)words; i += blockDim.x) st(base + i * 4u, value);
  fence_async(); __syncthreads();
  if (threadIdx.x == 0) {
    if (ahead)
      for (u32 j = 0; j < 2u; ++j) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(sink + ((blockIdx.x + j) & 15u) * 262144u), "r"(262144u) : "memory");
    bulk_store(out + (u64)blockIdx.x * words, base, 4u * words); bulk_commit();
    if (waits) bulk_wait_read();
  }
}
KERNEL busy(uint4* memory, int count) {
  const u64 end = now() + 3000000ull;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; now() < end; i += 4096u) for (u32 j = 0; j < 16u; ++j) memory[(i * 16u + j * 7919u) % (u32)count] = make_uint4(i, j, i, j);
}
KERNEL check(const u32* out, u32* wrong, int words) {
  u32 bad = 0;
  for (u32 i = threadIdx.x; i < (u32)words; i += blockDim.x) bad += out[(u64)blockIdx.x * words + i] != blockIdx.x + 1u;
  if (bad) atomicAdd(wrong, bad);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    words, threads, ctas = (1024, 256, 40000) if "small" in case else (16384, 1024, 6000)
    out, wrong = Memory(np.zeros(ctas * words, np.uint32)), Memory(np.zeros(1, np.uint32))
    beside, memory = call("cuStreamCreate", 1), Memory(np.zeros(1 << 26, np.uint8))
    for _ in range(5):
        if "busy" in case:
            bench.launch("busy", 64, 64, (memory, (1 << 26) // 16), stream=beside)
        bench.run("leave", ctas, threads, (out, memory, words, int(case.startswith("wait")), int("ahead" in case)), smem=words * 4 + 1024)
        bench.run("check", ctas, 256, (out, wrong, words))
    return {"wrong_words": int(wrong.read()[0]), "of": 5 * ctas * words}

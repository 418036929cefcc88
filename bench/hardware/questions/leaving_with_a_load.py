"""HW041: a CTA leaves while bulk loads still come in; do they land in the shared memory of the CTA that takes its place?"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW041"
ASKS = "CTAs load 32 KiB and leave without waiting, others fill the shared memory that they left, and look 20 us later whether it changed"
AHEAD = ("nothing ahead", "prefetches ahead")
CASES = tuple(f"{end}, {ahead}" for end in ("no wait", "wait") for ahead in AHEAD)

SOURCE = r"""
KERNEL leave(const u32* in, u8* sink, u32* wrong, int ahead, int waits) {
  const u32 base = pool(), bar = base + 32768u, t = threadIdx.x;
  if (blockIdx.x & 1u) {
    for (u32 j = t; j < 8192u; j += 128u) st(base + j * 4u, j ^ blockIdx.x);
    __syncthreads();
    spend(20000ull);
    u32 bad = 0;
    for (u32 j = t; j < 8192u; j += 128u) bad += ld(base + j * 4u) != (j ^ blockIdx.x);
    if (bad) atomicAdd(wrong, bad);
    if (t == 0) atomicAdd(wrong + 1, 8192u);
  } else if (t == 0) {
    mb_init(bar, 1u); fence_init();
    mb_expect(bar, 32768u);
    if (ahead)
      for (u32 j = 0; j < 2u; ++j) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(sink + ((blockIdx.x + j) & 15u) * 262144u), "r"(262144u) : "memory");
    for (u32 j = 0; j < 4u; ++j) bulk_load(base + j * 8192u, in + j * 2048u, 8192u, bar);
    if (waits) mb_wait(bar, 0u);
  }
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    end, ahead = case.split(", ")
    source, sink, wrong = Memory(np.full(8192, 0xFFFFFFFF, np.uint32)), Memory(np.zeros(4 << 20, np.uint8)), Memory(np.zeros(2, np.uint32))
    for _ in range(4):
        bench.run("leave", 20000, 128, (source, sink, wrong, AHEAD.index(ahead), int(end == "wait")), smem=33 * 1024 + 1024)
    bad, of = (int(x) for x in wrong.read())
    return {"wrong_words": bad, "of": of}

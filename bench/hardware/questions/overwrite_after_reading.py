"""HW071: threads have read a stage and arrive, then the copy engine overwrites it: is a proxy fence needed?"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW071"
ASKS = "read a stage, arrive (no proxy fence), and let the next bulk copy overwrite it: does any read see the new bytes"
CASES = ("no fence", "fence before the arrival", "no fence, loads queued")
ROUNDS = 4000

SOURCE = r"""
KERNEL reuse(const u32* in, u32* wrong, int rounds, int fence, int queued) {
  const u32 base = pool(), full = base + 8192u, empty = full + 8u, t = threadIdx.x;
  if (t == 0) { mb_init(full, 1u); mb_init(empty, 128u); fence_init(); }
  __syncthreads();
  u32 bad = 0;
  if (t == 128) {
    for (int i = 0; i < rounds; ++i) {
      if (i > 0 && !mb_wait(empty, (i - 1) & 1)) { atomicAdd(wrong + 1, 1u); break; }
      mb_expect(full, 8192u);
      bulk_load(base, in + (i % 64) * 2048, 8192u, full);
    }
  } else if (t < 128) {
    for (int i = 0; i < rounds; ++i) {
      if (!mb_wait(full, i & 1)) { atomicAdd(wrong + 1, 1u); break; }
      u32 v[16];
      #pragma unroll
      for (u32 j = 0; j < 16u; ++j)  // plain loads: nothing but the arrival orders them
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v[j]) : "r"(base + (queued ? ((t & 31u) * 256u + (t >> 5) * 64u + j * 4u) : (j * 128u + t) * 4u)));
      if (fence) fence_async();
      mb_arrive(empty);
      #pragma unroll
      for (u32 j = 0; j < 16u; ++j) bad += v[j] != (u32)(i % 64);
    }
  }
  if (bad) atomicAdd(wrong, bad);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    source, wrong = Memory(np.repeat(np.arange(64, dtype=np.uint32), 2048)), Memory(np.zeros(2, np.uint32))
    bench.run("reuse", 2 * bench.sms, 160, (source, wrong, ROUNDS, int(case.startswith("fence")), int("queued" in case)), smem=16384)
    bad, lost = wrong.read()
    return {"wrong_words": int(bad), "lost_waits": int(lost), "of": 2 * bench.sms * 2048 * ROUNDS}

"""HW070: where must `fence.proxy.async` stand between shared stores and a copy out of shared memory, and does silicon show its absence?"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW070"
ASKS = "threads store to shared memory, meet at a barrier, and one of them copies the bytes out: which fence is needed"
CASES = (
    "no fence", "fence by writers", "fence by issuer after the meeting", "no fence, own bytes", "fence, own bytes", "no fence, stores queued",
    "fence after the meeting, stores queued", "fence by writers, stores queued",
)  # fmt: skip
ROUNDS = 3000

# Every round has new values and the buffer before it holds the old ones, so a copy that runs ahead of the stores is seen. `queued` makes
# each store a conflict of all 32 lanes on one bank, so that a queue of them stands when the barrier is reached.
SOURCE = r"""
KERNEL hand_over(u32* out, u32* wrong, int rounds, int fence, int queued) {
  const u32 base = pool(), t = threadIdx.x;
  u32* mine = out + blockIdx.x * 4096u;
  u32 bad = 0;
  for (int i = 1; i <= rounds; ++i) {
    for (u32 j = 0; j < 32u; ++j) st(base + (queued ? (t & 31u) * 512u + (t >> 5) * 128u + j * 4u : (j * 128u + t) * 4u), (u32)i * 4099u + t * 32u + j);
    if (fence == 1) fence_async();
    sync(1, 128);
    if (t == 0) {
      if (fence == 2) fence_async();
      bulk_store(mine, base, 16384u); bulk_commit(); bulk_wait();
    }
    sync(2, 128);
    for (u32 j = 0; j < 32u; ++j)
      bad += ld_global(mine + (queued ? (t & 31u) * 128u + (t >> 5) * 32u + j : j * 128u + t)) != (u32)i * 4099u + t * 32u + j;
    sync(3, 128);
  }
  if (bad) atomicAdd(wrong, bad);
}
KERNEL own_bytes(u32* out, u32* wrong, int rounds, int fence) {
  const u32 t = threadIdx.x, mine = pool() + t * 16u;
  u32* to = out + (blockIdx.x * 128u + t) * 4u;
  u32 bad = 0;
  for (int i = 1; i <= rounds; ++i) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(mine), "r"(i) : "memory");
    if (fence) fence_async();
    bulk_store(to, mine, 16u); bulk_commit(); bulk_wait();
    for (u32 j = 0; j < 4u; ++j) bad += ld_global(to + j) != (u32)i;
  }
  if (bad) atomicAdd(wrong, bad);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    grid = 2 * bench.sms
    out, wrong = Memory(np.zeros(grid * 4096, np.uint32)), Memory(np.zeros(1, np.uint32))
    if "own" in case:
        bench.run("own_bytes", grid, 128, (out, wrong, ROUNDS, int(case.startswith("fence"))), smem=32768)
        words = grid * 128 * 4 * ROUNDS
    else:
        fence = 1 if "writers" in case else 2 if "after" in case else 0
        bench.run("hand_over", grid, 128, (out, wrong, ROUNDS, fence, int("queued" in case)), smem=32768)
        words = grid * 4096 * ROUNDS
    return {"wrong_words": int(wrong.read()[0]), "of": words}

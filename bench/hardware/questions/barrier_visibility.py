"""HW051: barriers initialised without `fence.mbarrier_init` and used by the copy engine at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW051"
ASKS = "init, CTA barrier, another thread's bulk copy signals the barrier: does the fence between matter"
CASES = ("fence", "no fence", "no fence, no CTA barrier, same thread", "cluster of 2 without its barrier")
ROUNDS = 40

SOURCE = r"""
KERNEL start(const u32* in, u32* lost, int fence, int meet) {
  const u32 base = pool(), bar = base + 1024u;
  if (threadIdx.x == 0) { mb_init(bar, 1u); if (fence) fence_init(); }
  if (meet) __syncthreads();
  if (threadIdx.x == (meet ? 32u : 0u)) { mb_expect(bar, 1024u); bulk_load(base, in, 1024u, bar); }
  __syncthreads();
  if (threadIdx.x == 0 && (!mb_wait(bar, 0u, 2000000ull) || ld(base) != 9u)) atomicAdd(lost, 1u);
  __syncthreads();
}
KERNEL pair(u32* lost) {
  const u32 bar = pool();
  if (threadIdx.x == 0) {
    if (rank() == 1) spend(3000ull * (1u + blockIdx.x % 7u));
    mb_init(bar, 1u); fence_init();
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(peer(bar, rank() ^ 1u)) : "memory");
    if (!mb_wait(bar, 0u, 2000000ull)) atomicAdd(lost, 1u);
  }
  cluster_sync();
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    source, lost = Memory(np.full(256, 9, np.uint32)), Memory(np.zeros(1, np.uint32))
    grid = 8 * bench.sms
    for _ in range(ROUNDS if "cluster" not in case else 4):
        if "cluster" in case:
            bench.run("pair", grid // 2 * 2, 32, (lost,), smem=4096, cluster=2)
        else:
            bench.run("start", grid, 64, (source, lost, int(case == "fence"), int("same" not in case)), smem=4096)
    return {"lost": int(lost.read()[0]), "of": grid * (ROUNDS if "cluster" not in case else 4)}

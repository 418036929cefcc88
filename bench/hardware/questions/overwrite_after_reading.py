"""HW071: threads have read a stage and arrive, then the copy engine overwrites it: is a proxy fence needed?"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW071"
ASKS = "read a stage, arrive, and let the next bulk copy overwrite it: does any read see the new bytes, and what does it cost to be sure"
ROUNDS = 4000
ENDS = ("nothing", "proxy fence", "membar", "use", "use, lane 0 arrives", "nothing, lane 0 arrives", "opaque use")
CASES = tuple(f"{end}, loads {state}" for end in ENDS for state in ("free", "queued"))

# What stands between the loads and the arrival: nothing, a fence, or an instruction that needs the last value loaded. `queued` makes each
# load a conflict of all 32 lanes on one bank. A second kernel counts the cycles of one round that ends in each way.
TEMPLATE = r"""
KERNEL reuse_WAY(const u32* in, u32* wrong, int rounds, int queued) {
  constexpr int end = WAY;
  const u32 base = pool(), full = base + 8192u, empty = full + 8u, t = threadIdx.x;
  if (t == 0) { mb_init(full, 1u); mb_init(empty, end == 4 || end == 5 ? 4u : 128u); fence_init(); }
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
      u32 at = empty;
      if (end == 1) fence_async();
      if (end == 2) asm volatile("fence.acq_rel.cta;" ::: "memory");
      if (end == 3 || end == 4) at += v[15] > 64u;  // never: values are below 64
      if (end == 6) asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0xffffffff; @p trap; }" :: "r"(v[15]) : "memory");
      if (end == 4 || end == 5) {
        __syncwarp();
        if ((t & 31u) == 0u) mb_arrive(at);
      } else mb_arrive(at);
      #pragma unroll
      for (u32 j = 0; j < 16u; ++j) bad += v[j] != (u32)(i % 64);
    }
  }
  if (bad) atomicAdd(wrong, bad);
}
KERNEL cost_WAY(const u32* in, u32* cycles, u32* out) {
  constexpr int end = WAY;
  const u32 base = pool(), bar = base + 8192u, t = threadIdx.x;
  if (t == 0) { mb_init(bar, 128u); fence_init(); }
  for (u32 j = t; j < 2048u; j += 128u) st(base + j * 4u, in[j]);
  __syncthreads();
  u32 start, stop, sum = 0;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(start) :: "memory");
  for (u32 i = 0; i < 64u; ++i) {
    u32 v[4];
    #pragma unroll
    for (u32 j = 0; j < 4u; ++j) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v[j]) : "r"(base + ((i * 16u + j) % 16u * 128u + t) * 4u));
    u32 at = bar;
    if (end == 1) fence_async();
    if (end == 2) asm volatile("fence.acq_rel.cta;" ::: "memory");
    if (end == 3 || end == 4) at += v[3] > 64u;
    if (end == 6) asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0xffffffff; @p trap; }" :: "r"(v[3]) : "memory");
    mb_arrive(at);
    sum += v[0] + v[1] + v[2] + v[3];
    out[(i * 128u + t) & 0xffffu] = sum;  // a store to global memory that the next round's fence meets in flight
  }
  asm volatile("mov.u32 %0, %%clock;" : "=r"(stop) :: "memory");
  if (t == 0) *cycles = (stop - start) / 64u + (sum == 12345u);
}
"""
SOURCE = "".join(TEMPLATE.replace("WAY", str(i)) for i in range(len(ENDS)))


def answer(bench: Bench, case: str) -> dict[str, Any]:
    source, wrong = Memory(np.repeat(np.arange(64, dtype=np.uint32), 2048)), Memory(np.zeros(2, np.uint32))
    end, state = case.rsplit(", loads ", 1)
    bench.run(f"reuse_{ENDS.index(end)}", 2 * bench.sms, 160, (source, wrong, ROUNDS, int(state == "queued")), smem=16384)
    bad, lost = (int(x) for x in wrong.read())
    cycles = Memory(np.zeros(1, np.uint32))
    bench.run(f"cost_{ENDS.index(end)}", 1, 128, (source, cycles, Memory(np.zeros(1 << 16, np.uint32))), smem=16384)
    return {"wrong_words": bad, "lost_waits": lost, "of": 2 * bench.sms * 2048 * ROUNDS, "cycles_a_round_with_a_store_in_flight": int(cycles.read()[0])}

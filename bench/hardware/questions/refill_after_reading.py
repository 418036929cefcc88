"""HW071, HW053: threads have read a stage and arrive, then other threads refill it: a neighbour warp, or a peer CTA's stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW071"
ASKS = (
    "read a stage, arrive, and let somebody who has seen the arrival overwrite it, by stores of another warp, by cp.async, by st.async or by plain stores "
    "from a peer CTA: does any read see the new words"
)
ROUNDS = 3000
WRITERS = ("stores", "cp.async", "a peer's st.async", "a peer's stores")
ENDS = ("nothing", "proxy fence", "use", "release at cluster scope")
MEETING = "cluster barrier"
CASES = tuple(f"{writer}, {end}, loads {state}" for writer in WRITERS for end in ENDS for state in ("free", "queued"))
CASES += tuple(f"{writer}, {MEETING}, loads {state}" for writer in WRITERS[2:] for state in ("free", "queued"))

# What stands between the loads and the arrival: nothing, a proxy fence, an instruction that needs the last value, or nothing with an arrival that releases, and a wait
# that acquires, at cluster scope. `queued` makes each load a conflict of all 32 lanes on one bank. The stage lies in CTA 0; `empty` with whoever refills it.
TEMPLATE = r"""
KERNEL refill_NAME(const u32* in, u32* wrong, int rounds, int queued) {
  constexpr int writer = WRITER, end = END;
  const u32 base = pool(), full = base + 8192u, empty = full + 8u, t = threadIdx.x;
  if (t == 0) {
    mb_init(full, writer == 1 ? 32u : 1u); mb_init(empty, 128u); fence_init();
    if (writer == 2) mb_expect(full, 8192u);
  }
  cluster_sync();
  const u32 far = peer(base, 0u), told = peer(empty, writer < 2 ? 0u : 1u);
  u32 bad = 0, lost = 0;
  if (rank() == (writer < 2 ? 0u : 1u) && t >= 128u) {
    const u32 lane = t - 128u;
    for (int i = 0; i < rounds; ++i) {
      if (i > 0) lost |= end == 3 ? !seen_cluster(empty, (i - 1) & 1) : !seen(empty, (i - 1) & 1);
      if (lost) break;
      for (u32 j = 0; j < 16u; ++j) {
        const u32 at = (j * 32u + lane) * 16u, v = i % 64;
        if (writer == 0) asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(base + at), "r"(v) : "memory");
        if (writer == 1) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(base + at), "l"(in + v * 2048u + at / 4u) : "memory");
        if (writer == 2) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%2, %2, %2, %2}, [%1];" :: "r"(far + at), "r"(far + 8192u), "r"(v) : "memory");
        if (writer == 3) asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(far + at), "r"(v) : "memory");
      }
      if (writer == 1) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(full) : "memory");
      __syncwarp();
      if (writer == 0 && lane == 0u) mb_arrive(full);
      if (writer == 3 && lane == 0u) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(far + 8192u) : "memory");
    }
  } else if (rank() == 0u && t < 128u) {
    for (int i = 0; i < rounds; ++i) {
      if (!seen_cluster(full, i & 1)) { lost = 1; break; }
      if (writer == 2 && t == 0u) mb_expect(full, 8192u);
      u32 v[16];
      #pragma unroll
      for (u32 j = 0; j < 16u; ++j)
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v[j]) : "r"(base + (queued ? ((t & 31u) * 256u + (t >> 5) * 64u + j * 4u) : (j * 128u + t) * 4u)));
      u32 at = writer < 2 ? empty : told;
      if (end == 1) fence_async();
      if (end == 2) at += v[15] > 64u;  // never: values are below 64
      if (writer == 2) __syncwarp();  // the next phase is armed before any arrival of this warp
      if (end == 3) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(writer < 2 ? peer(at, 0u) : at) : "memory");
      else if (writer < 2) mb_arrive(at);
      else asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(at) : "memory");
      #pragma unroll
      for (u32 j = 0; j < 16u; ++j) bad += v[j] != (u32)(i % 64);
    }
  }
  if (bad) atomicAdd(wrong, bad);
  if (lost) atomicAdd(wrong + 1, 1u);
  cluster_sync();
}
"""
# The same where nobody arrives: both CTAs meet in a barrier of the cluster between the loads and the next stores.
TOGETHER = r"""
KERNEL meet_WRITER(u32* wrong, int rounds, int queued) {
  constexpr int writer = WRITER;
  const u32 base = pool(), full = base + 8192u, t = threadIdx.x;
  if (t == 0) {
    mb_init(full, 1u); fence_init();
    if (writer == 2) mb_expect(full, 8192u);
  }
  cluster_sync();
  const u32 far = peer(base, 0u);
  const bool writes = rank() == 1u && t >= 128u, reads = rank() == 0u && t < 128u;
  u32 bad = 0, lost = 0;
  for (int i = 0; i < rounds; ++i) {
    u32 v[16];
    if (writes) {
      for (u32 j = 0; j < 16u; ++j) {
        const u32 at = (j * 32u + t - 128u) * 16u;
        if (writer == 2) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%2, %2, %2, %2}, [%1];" :: "r"(far + at), "r"(far + 8192u), "r"(i % 64) : "memory");
        if (writer == 3) asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(far + at), "r"(i % 64) : "memory");
      }
      __syncwarp();
      if (writer == 3 && t == 128u) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(far + 8192u) : "memory");
    }
    if (reads) {
      lost |= !seen_cluster(full, i & 1);
      if (writer == 2 && t == 0u) mb_expect(full, 8192u);
      #pragma unroll
      for (u32 j = 0; j < 16u; ++j)
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v[j]) : "r"(base + (queued ? ((t & 31u) * 256u + (t >> 5) * 64u + j * 4u) : (j * 128u + t) * 4u)));
    }
    cluster_sync();
    if (reads) {
      #pragma unroll
      for (u32 j = 0; j < 16u; ++j) bad += v[j] != (u32)(i % 64);
    }
  }
  if (bad) atomicAdd(wrong, bad);
  if (lost) atomicAdd(wrong + 1, 1u);
  cluster_sync();
}
"""
SOURCE = r"""
DEVICE bool seen(u32 bar, u32 parity) {
  for (u32 n = 0; n < (1u << 20); ++n) if (mb_test(bar, parity)) return true;
  return false;
}
DEVICE bool seen_cluster(u32 bar, u32 parity) {
  for (u32 n = 0, ok = 0; n < (1u << 20); ++n) {
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(ok) : "r"(bar), "r"(parity) : "memory");
    if (ok) return true;
  }
  return false;
}
""" + "".join(TEMPLATE.replace("NAME", f"{w}_{e}").replace("WRITER", str(w)).replace("END", str(e)) for w in range(len(WRITERS)) for e in range(len(ENDS)))
SOURCE += "".join(TOGETHER.replace("WRITER", str(w)) for w in (2, 3))


def answer(bench: Bench, case: str) -> dict[str, Any]:
    source, wrong = Memory(np.repeat(np.arange(64, dtype=np.uint32), 2048)), Memory(np.zeros(2, np.uint32))
    writer, end, state = case.replace("loads ", "").split(", ")
    clusters = bench.sms // 2
    if end == MEETING:
        bench.run(f"meet_{WRITERS.index(writer)}", 2 * clusters, 160, (wrong, ROUNDS, int(state == "queued")), smem=16384, cluster=2)
        bad, lost = (int(x) for x in wrong.read())
        return {"wrong_words": bad, "lost_waits": lost, "of": clusters * 2048 * ROUNDS}
    bench.run(f"refill_{WRITERS.index(writer)}_{ENDS.index(end)}", 2 * clusters, 160, (source, wrong, ROUNDS, int(state == "queued")), smem=16384, cluster=2)
    bad, lost = (int(x) for x in wrong.read())
    return {"wrong_words": bad, "lost_waits": lost, "of": clusters * 2048 * ROUNDS}

"""HW064: the four warps of a warpgroup each store a part of an operand and issue the product without having met; does a warp read what a later one stores?"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW064"
ASKS = "each warp of a warpgroup stores two rows of B, one of them late, fences, and issues the product without a meeting: is anything multiplied before the late rows are there"
CASES = ("meeting", "no meeting", "meeting, one warp 2 us late", "no meeting, one warp 2 us late", "no meeting, one warp 2 us late behind the fence of wgmma")
ROUNDS = 1000

# A (64 x 16) of ones times B (8 x 16, all of one value a round) is 16 times that value everywhere.
SOURCE = r"""
KERNEL together(u32* wrong, int rounds, int meet, int late) {
  const u32 base = pool(), t = threadIdx.x, b = base + 8192u, warp = t >> 5, lane = t & 31u;
  u32 bad = 0;
  for (u32 j = t; j < 512u; j += 128u) st(base + j * 4u, 0x3c003c00u);
  fence_async(); sync(1, 128);
  for (int i = 1; i <= rounds; ++i) {
    const u32 half = 0x3c00u + ((u32)i & 3u) * 0x400u;  // 1, 2, 4, 8
    const bool mine = ((u32)i >> 2 & 3u) == warp;
    if (late == 1 && mine) __nanosleep(2000);
    // core matrices of 8 rows of 16 bytes: rows 2 warp and 2 warp + 1, in both halves of K
    if (lane < 16u) st(b + (lane >> 3) * 128u + warp * 32u + (lane & 7u) * 4u, half << 16 | half);
    fence_async();
    if (meet) sync(2, 128);
    __syncwarp();
    float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    if (late == 2 && mine) __nanosleep(2000);
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 0, 1; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(descriptor(base, 64u, 8u, 0u)), "l"(descriptor(b, 8u, 8u, 0u)) : "memory");
    for (int j = 0; j < 4; ++j) bad += d[j] != 16.0f * (float)(1 << (i & 3));
    sync(1, 128);
  }
  if (bad) atomicAdd(wrong, bad);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    wrong = Memory(np.zeros(1, np.uint32))
    late = 2 if "behind" in case else 1 if "late" in case else 0
    bench.run("together", 2 * bench.sms, 128, (wrong, ROUNDS, int(case.startswith("meeting")), late), smem=32768)
    return {"wrong_elements": int(wrong.read()[0]), "of": 2 * bench.sms * 512 * ROUNDS}

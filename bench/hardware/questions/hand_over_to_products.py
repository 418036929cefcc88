"""HW070: the same question for `wgmma`, which reads shared memory through the async proxy too."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW070"
ASKS = "threads store an operand to shared memory, meet at a barrier, and a warpgroup multiplies it: which fence is needed"
CASES = (
    "no fence", "fence by writers", "fence by readers after the meeting", "no fence, stores queued", "fence by writers, stores queued",
    "fence by readers after the meeting, stores queued",
)  # fmt: skip
ROUNDS = 4000

# A (64 x 16, all of one value a round) times B (8 x 16, ones) is 16 times that value everywhere, whatever the layout.
SOURCE = r"""
KERNEL multiply(u32* wrong, int rounds, int fence, int queued) {
  const u32 base = pool(), t = threadIdx.x, b = base + 8192u;
  u32 bad = 0;
  for (u32 j = t; j < 256u; j += 128u) st(b + j * 4u, 0x3c003c00u);
  fence_async(); sync(1, 128);
  for (int i = 1; i <= rounds; ++i) {
    const u32 half = 0x3c00u + ((u32)i & 3u) * 0x400u;  // 1, 2, 4, 8
    for (u32 j = 0; j < 16u; ++j) st(base + (queued ? ((t & 31u) * 128u + ((t >> 5) * 16u + j) * 4u) & 8191u : (j * 128u + t) * 4u), half << 16 | half);
    if (queued) for (u32 j = 0; j < 16u; ++j) st(base + 4096u + ((t & 31u) * 128u + ((t >> 5) * 16u + j) * 4u) % 4096u, half << 16 | half);
    if (fence == 1) fence_async();
    sync(1, 128);
    if (fence == 2) fence_async();
    float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    wgmma_n8(d, descriptor(base, 1u, 64u, 1u), descriptor(b, 1u, 64u, 1u));
    for (int j = 0; j < 4; ++j) bad += d[j] != 16.0f * (float)(1 << (i & 3));
    sync(2, 128);
  }
  if (bad) atomicAdd(wrong, bad);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    wrong = Memory(np.zeros(1, np.uint32))
    fence = 1 if "writers" in case else 2 if "after" in case else 0
    bench.run("multiply", 2 * bench.sms, 128, (wrong, ROUNDS, fence, int("queued" in case)), smem=32768)
    return {"wrong_elements": int(wrong.read()[0]), "of": 2 * bench.sms * 512 * ROUNDS}

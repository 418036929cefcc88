"""HW046: a barrier told to expect other bytes than arrive, with copies large enough to report in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW046"
ASKS = "one bulk copy of 64 KiB and a barrier that expects more, less, or nothing"
SIZES = {"exact": 65536, "16 more": 65552, "16 less": 65520, "half": 32768, "nothing": 0, "twice": 131072}
CASES = (*SIZES, "16 less, then another arrival", "exact, then another phase", "nothing, then another phase")

SOURCE = r"""
KERNEL copy(const u32* in, u32* out, int bytes, int more) {
  const u32 base = pool(), bar = base + 65536u;
  for (u32 i = threadIdx.x; i < 16384u; i += 32u) st(base + i * 4u, 0u);
  fence_async(); __syncwarp();
  if (threadIdx.x) return;
  mb_init(bar, 1u); fence_init();
  mb_expect(bar, (u32)bytes);
  bulk_load(base, in, 65536u, bar);
  const u64 start = now();
  out[0] = mb_wait(bar, 0u, 5000000ull);
  out[1] = (u32)(now() - start);
  u32 present = 0;
  for (u32 i = 0; i < 16384u; ++i) present += ld(base + i * 4u) == 7u;
  out[2] = present;
  spend(1000000ull);
  present = 0;
  for (u32 i = 0; i < 16384u; ++i) present += ld(base + i * 4u) == 7u;
  out[3] = present;
  if (!more) return;
  mb_expect(bar, 16u);
  bulk_load(base, in, 16u, bar);
  out[4] = mb_wait(bar, out[0] ? 1u : 0u, 5000000ull);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    source, out = Memory(np.full(16384, 7, np.uint32)), Memory(np.zeros(8, np.uint32))
    bench.run("copy", 1, 32, (source, out, SIZES[case.partition(", then")[0]], int("then" in case)), smem=65536 + 2048)
    complete, ns, early, late, following = (int(x) for x in out.read()[:5])
    return {"completes": bool(complete), "after_ns": ns, "words_then": early, "words_later": late, "of": 16384, **({"next_phase_completes": bool(following)} if "then" in case else {})}

"""HW052: more bytes expected of one phase than the barrier counts, 2^20 - 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW052"
ASKS = "loads of 64 KiB, all announced before the first is issued, on one phase of a barrier: does it complete, and when"
CASES = ("15 loads", "16 loads less 16 bytes", "16 loads", "17 loads", "32 loads")

SOURCE = r"""
KERNEL many(const u8* in, u32* out, int loads, int less) {
  const u32 base = pool(), bar = base + 65536u;
  mb_init(bar, 1u); fence_init();
  for (int i = 1; i < loads; ++i) asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(65536u) : "memory");
  const bool early = mb_test(bar, 0u);
  mb_expect(bar, 65536u - less);
  out[0] = early | mb_test(bar, 0u) << 1;
  for (int i = 0; i < loads; ++i) bulk_load(base, in, i ? 65536u : 65536u - less, bar);
  out[1] = mb_wait(bar, 0u, 5000000ull);
  out[2] = mb_test(bar, 1u);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    source, out = Memory(np.zeros(65536, np.uint8)), Memory(np.zeros(3, np.uint32))
    bench.run("many", 1, 1, (source, out, int(case.split()[0]), 16 if "less" in case else 0), smem=65536 + 2048)
    early, completes, further = (int(x) for x in out.read())
    return {"complete_before_any_load": bool(early), "completes": bool(completes), "next_phase_too": bool(further)}

"""HW053: more arrivals than a phase has, and a producer two phases ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW053"
ASKS = "what a barrier shows after arrivals beyond its count, to waiters on either parity"
CASES = ("all",)

SOURCE = r"""
KERNEL count(u32* out) {
  const u32 bar = pool();
  if (threadIdx.x) return;
  u32 n = 0;
  mb_init(bar, 2u);
  out[n++] = mb_test(bar, 0u) * 2u + mb_test(bar, 1u);                     // fresh
  mb_arrive(bar); mb_arrive(bar); mb_arrive(bar);
  out[n++] = mb_test(bar, 0u) * 2u + mb_test(bar, 1u);                     // three arrivals of two
  mb_arrive(bar);
  out[n++] = mb_test(bar, 0u) * 2u + mb_test(bar, 1u);                     // and a fourth: two phases on
  mb_init(bar + 8u, 1u);
  mb_arrive(bar + 8u); mb_arrive(bar + 8u);
  out[n++] = mb_test(bar + 8u, 0u) * 2u + mb_test(bar + 8u, 1u);           // a producer two phases ahead of a waiter on phase 0
  out[n++] = mb_wait(bar + 8u, 0u, 2000000ull);                            // which waits for
  mb_init(bar + 16u, 1u);
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;" :: "r"(bar + 16u) : "memory");
  out[n++] = mb_test(bar + 16u, 0u) * 2u + mb_test(bar + 16u, 1u);         // one arrival that counts for two
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    del case
    out = Memory(np.full(8, 99, np.uint32))
    bench.run("count", 1, 32, (out,), smem=2048)
    fresh, three, four, ahead, waited, doubled = (int(x) for x in out.read()[:6])

    def shown(x: int) -> dict[str, bool]:
        return {"parity_0_complete": bool(x & 2), "parity_1_complete": bool(x & 1)}

    return {
        "fresh": shown(fresh), "3 arrivals, count 2": shown(three), "4 arrivals, count 2": shown(four), "2 arrivals, count 1": shown(ahead),
        "the waiter on phase 0 then passes": bool(waited), "arrival of 2, count 1": shown(doubled),
    }  # fmt: skip

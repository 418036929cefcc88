"""HW053: more arrivals than a phase has, and a producer two phases ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW053"
ASKS = "what a barrier shows after arrivals beyond its count, to waiters on either parity"
STEPS: dict[str, tuple[int, str]] = {
    "fresh, count 2": (2, ""),
    "2 arrivals, count 2": (2, "mb_arrive(bar); mb_arrive(bar);"),
    "3 arrivals, count 2": (2, "mb_arrive(bar); mb_arrive(bar); mb_arrive(bar);"),
    "4 arrivals, count 2": (2, "for (int i = 0; i < 4; ++i) mb_arrive(bar);"),
    "2 arrivals, count 1": (1, "mb_arrive(bar); mb_arrive(bar);"),
    "one arrival of 2, count 1": (1, 'asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;" :: "r"(bar) : "memory");'),
    "one arrival of 3, count 2": (2, 'asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 3;" :: "r"(bar) : "memory");'),
    "2 arrivals with bytes missing, count 1": (1, "mb_expect(bar, 64u); mb_arrive(bar);"),
    "bytes expected behind the phase, count 1": (1, 'mb_arrive(bar); asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" :: "r"(bar) : "memory");'),
}
CASES = tuple(STEPS)

SOURCE = "\n".join(
    f"""
KERNEL count_{i}(u32* out) {{
  const u32 bar = pool();
  if (threadIdx.x) return;
  mb_init(bar, {count}u);
  {steps}
  out[0] = mb_test(bar, 0u); out[1] = mb_test(bar, 1u);
  out[2] = mb_wait(bar, 0u, 2000000ull);
}}"""
    for i, (count, steps) in enumerate(STEPS.values())
)


def answer(bench: Bench, case: str) -> dict[str, Any]:
    out = Memory(np.full(4, 99, np.uint32))
    bench.run(f"count_{CASES.index(case)}", 1, 32, (out,), smem=2048)
    zero, one, waited = (bool(x) for x in out.read()[:3])
    return {"parity_0_complete": zero, "parity_1_complete": one, "a_waiter_on_phase_0_passes": waited}

"""HW101: a dependent launch that reads what its predecessor writes, with and without the wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory
from cake_backend.judge.device.driver import call

CONTRACT = "HW101"
ASKS = "the predecessor lets its dependents start and writes before or after that; how many CTAs of the next kernel read old values"
CASES = (
    "write after the trigger, no wait", "write after the trigger, wait", "write before the trigger, no wait", "write before the trigger, wait",
    "no trigger, no wait", "no trigger, wait", "plain launch, no wait",
)  # fmt: skip
ROUNDS = 200

SOURCE = r"""
KERNEL first(u32* data, int value, int order) {
  if (order == 1) data[blockIdx.x * 32u + threadIdx.x] = (u32)value;
  if (order) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  if (order != 1) { spend(20000ull); data[blockIdx.x * 32u + threadIdx.x] = (u32)value; }
  else spend(20000ull);
}
KERNEL second(const u32* data, u32* stale, int value, int wait) {
  if (wait) asm volatile("griddepcontrol.wait;" ::: "memory");
  if (ld_global(data + blockIdx.x * 32u + threadIdx.x) != (u32)value && threadIdx.x == 0) atomicAdd(stale, 1u);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    grid = bench.sms
    data, stale = Memory(np.zeros(grid * 32, np.uint32)), Memory(np.zeros(1, np.uint32))
    order = 0 if case.startswith(("no trigger", "plain")) else 1 if "before" in case else 2
    stream = call("cuStreamCreate", 1)
    for i in range(1, ROUNDS + 1):
        bench.launch("first", grid, 32, (data, i, order), stream=stream)
        bench.launch("second", grid, 32, (data, stale, i, int(case.endswith(", wait"))), early=not case.startswith("plain"), stream=stream)
        call("cuStreamSynchronize", stream)
    return {"stale_ctas": int(stale.read()[0]), "of": grid * ROUNDS}

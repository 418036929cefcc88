"""HW093: how large a cluster is started with and without the opt-in, and how many fit at the same time."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory
from cake_backend.judge.device.driver import bindings, call

CONTRACT = "HW093"
ASKS = "clusters of 1 to 32 blocks with little or much shared memory, with and without the opt-in above 8: do they start, do all blocks run"
CASES = tuple(f"{n} blocks, {smem} KiB{opt}" for n in (2, 3, 6, 8, 9, 12, 16, 32) for smem in (16, 200) for opt in (("", ", opt-in") if n > 8 else ("",)))

SOURCE = r"""
KERNEL present(u32* out) {
  cluster_sync();
  if (threadIdx.x == 0) atomicAdd(out + (rank() == 0), 1u);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    n, smem, d = int(case.split()[0]), int(case.split()[2]), bindings()
    attribute = d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    call("cuFuncSetAttribute", bench.module.kernel("present"), attribute, int("opt-in" in case))  # the case before shares the process
    out = Memory(np.zeros(2, np.uint32))
    bench.run("present", 4 * n, 64, (out,), smem=smem * 1024, cluster=n)
    others, firsts = (int(x) for x in out.read())
    return {"blocks_that_ran": others + firsts, "of": 4 * n, "first_ones": firsts}

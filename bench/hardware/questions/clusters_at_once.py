"""HW093: how many clusters of a size run at the same time, by the driver's count and by blocks that wait for each other to be counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory
from cake_backend.judge.device.driver import bindings, call

CONTRACT = "HW093"
ASKS = "clusters of 2 to 16 blocks with shared memory for one to four blocks an SM: how many does the driver say fit at once, how many were there before the first one left"
SIZES, RESIDENT = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16), (1, 2, 3, 4)
CASES = tuple(f"clusters of {n}, {r} an SM" for r in RESIDENT for n in SIZES)
STAY_NS = 2_000_000

SOURCE = r"""
KERNEL stay(u32* out, int ns) {
  if (threadIdx.x) return;
  atomicAdd(out, 1u);
  spend(ns);
  if (atomicAdd(out + 1, 1u) == 0) out[2] = atomicAdd(out, 0u);
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    d, words = bindings(), case.replace(",", "").split()
    n, resident = int(words[2]), int(words[3])
    kernel, smem = bench.module.kernel("stay"), 220 // resident * 1024
    call("cuFuncSetAttribute", kernel, d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, int(n > 8))
    call("cuFuncSetAttribute", kernel, d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem)
    config, a = d.CUlaunchConfig(), d.CUlaunchAttribute()
    config.gridDimX, config.gridDimY, config.gridDimZ = n, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 128, 1, 1
    config.sharedMemBytes = smem
    a.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z = n, 1, 1
    config.attrs, config.numAttrs = [a], 1
    said = int(call("cuOccupancyMaxActiveClusters", kernel, config))
    out = Memory(np.zeros(3, np.uint32))
    bench.run("stay", (2 * resident * bench.sms // n + 1) * n, 128, (out, STAY_NS), smem=smem, cluster=n)
    return {"clusters_said": said, "clusters_seen": round(float(out.read()[2]) / n, 2), "sms": bench.sms}

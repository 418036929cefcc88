"""HW048: what lies outside a tensor is filled on the way in, and skipped on the way out, also by reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory, tensor_map

CONTRACT = "HW048"
ASKS = "boxes that hang over every edge: the bytes loaded, the bytes stored, and the bytes that count for the barrier"
PLACES = {"inside": (0, 0), "above": (0, -1), "below": (0, 2), "left by 4": (-4, 0), "left by 1": (-1, 0), "right by 1": (1, 0), "right by 4": (4, 0), "far": (1 << 20, -(1 << 20))}
WAYS = ("load", "load nan f32", "load nan bf16", "store", "reduce")
CASES = tuple(f"{way}, {place}" for way in WAYS for place in PLACES if way in ("load", "store") or place in ("below", "left by 4"))

SOURCE = r"""
KERNEL fetch(const __grid_constant__ Map map, u32* out, int x, int y, int words, u32* flag) {
  const u32 base = pool(), bar = base + 8192u;
  for (u32 i = threadIdx.x; i < (u32)words; i += 32u) st(base + i * 4u, 0xabababab);
  fence_async(); __syncwarp();
  if (threadIdx.x == 0) {
    mb_init(bar, 1u); fence_init(); mb_expect(bar, 4u * words);
    tma_load(base, &map, x, y, bar);
    *flag = mb_wait(bar, 0u) ? 1u : 2u;
  }
  __syncwarp();
  for (u32 i = threadIdx.x; i < (u32)words; i += 32u) out[i] = ld(base + i * 4u);
}
KERNEL put(const __grid_constant__ Map map, int x, int y, int words, int add) {
  const u32 base = pool();
  for (u32 i = threadIdx.x; i < (u32)words; i += 32u) st(base + i * 4u, 1u);
  fence_async(); __syncwarp();
  if (threadIdx.x == 0) {
    if (add) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], [%1];" :: "l"(&map), "r"(base), "r"(x), "r"(y) : "memory");
    else tma_store(&map, base, x, y);
    bulk_commit(); bulk_wait();
  }
}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    way, place = case.split(", ")
    x, y = PLACES[place]
    if way.startswith("load"):
        narrow = "bf16" in way
        kind, dims, row = ("BFLOAT16", (8, 4), 16) if narrow else ("FLOAT32", (4, 4), 16)
        memory = Memory(np.full(16, 0x3F803F80 if narrow else 7, np.uint32))
        encoded = tensor_map(memory, kind, dims, (row,), (dims[0], 4), fill="NAN_REQUEST_ZERO_FMA" if "nan" in way else "NONE")
        out, flag = Memory(np.zeros(16, np.uint32)), Memory(np.zeros(1, np.uint32))
        bench.run("fetch", 1, 32, (encoded, out, x, y, 16, flag), smem=16384)
        return {"complete": int(flag.read()[0]) == 1, "words": [f"{w:08x}" for w in out.read()], "box_at": [x, y]}
    memory = Memory(np.full(64, 5, np.uint32))  # rows of 4 in a pitch of 8, one row in front and behind
    encoded = tensor_map(memory, "UINT32", (4, 4), (32,), (4, 4), offset=32)
    bench.run("put", 1, 32, (encoded, x, y, 16, int(way == "reduce")), smem=4096)
    after = memory.read().reshape(8, 8)
    return {"rows": after.tolist(), "box_at": [x, y]}

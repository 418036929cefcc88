"""HW043: whether a tensor copy may start between two multiples of 16 bytes of its innermost axis, for each rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory, tensor_map

CONTRACT = "HW043"
ASKS = "a box of 64 f32, or 64 bf16, whose first coordinate is no multiple of 16 bytes, by maps of one to three axes"
CASES = tuple(f"{rank}-D {dtype} from {x}" for rank in (1, 2, 3) for dtype in ("f32", "bf16") for x in (0, 1, 2, 4, 8, -1, 250))

SOURCE = r"""
KERNEL fetch(const __grid_constant__ Map map, u32* out, int x, int rank, int words, u32* flag) {
  const u32 base = pool(), bar = base + 8192u;
  for (u32 i = threadIdx.x; i < (u32)words; i += 32u) st(base + i * 4u, 0xabababab);
  fence_async(); __syncwarp();
  if (threadIdx.x == 0) {
    mb_init(bar, 1u); fence_init(); mb_expect(bar, 4u * words);
    if (rank == 1) asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
      :: "r"(base), "l"(&map), "r"(x), "r"(bar) : "memory");
    else if (rank == 2) tma_load(base, &map, x, 1, bar);
    else asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
      :: "r"(base), "l"(&map), "r"(x), "r"(1), "r"(1), "r"(bar) : "memory");
    *flag = mb_wait(bar, 0u) ? 1u : 2u;
  }
  __syncwarp();
  for (u32 i = threadIdx.x; i < (u32)words; i += 32u) out[i] = ld(base + i * 4u);
}
"""
WIDTH = 256


def answer(bench: Bench, case: str) -> dict[str, Any]:
    shape, dtype, _, start = case.split()
    rank, x, narrow = int(shape[0]), int(start), dtype == "bf16"
    size = 2 if narrow else 4
    values = np.arange(1, 4 * WIDTH + 1, dtype=np.uint16 if narrow else np.uint32)
    memory = Memory(values.view(np.uint32))
    dims, strides = (WIDTH, 2, 2)[:rank], (WIDTH * size, 2 * WIDTH * size)[: rank - 1]
    encoded = tensor_map(memory, "UINT16" if narrow else "UINT32", dims, strides or (16,), (64, 1, 1)[:rank])
    words = 64 * size // 4
    out, flag = Memory(np.zeros(words, np.uint32)), Memory(np.zeros(1, np.uint32))
    bench.run("fetch", 1, 32, (encoded, out, x, rank, words, flag), smem=16384)
    row = values[WIDTH * (0, 1, 3)[rank - 1] :][:WIDTH]
    expected = [int(row[i]) if 0 <= i < WIDTH else 0 for i in range(x, x + 64)]
    return {"complete": int(flag.read()[0]) == 1, "right": out.read().view(values.dtype).tolist() == expected}

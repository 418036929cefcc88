"""HW043: whether a tensor copy may start between two multiples of 16 bytes of its innermost axis, for each rank and direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory, tensor_map

CONTRACT = "HW043"
ASKS = "a box of 64 f32, or 64 bf16, whose first coordinate is or is no multiple of 16 bytes, by maps of one to three axes, in and out"
LOADS = tuple(f"load {rank}-D {dtype} from {x}" for rank in (1, 2, 3) for dtype in ("f32", "bf16") for x in (0, 1, 4, 8, -1, -8, 250))
STORES = tuple(f"store {rank}-D {dtype} from {x}" for rank in (1, 2) for dtype in ("f32", "bf16") for x in (0, 1, 4, 8, -1, -8, 250))
CASES = LOADS + STORES

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
KERNEL put(const __grid_constant__ Map map, const u32* in, int x, int rank, int words) {
  const u32 base = pool();
  for (u32 i = threadIdx.x; i < (u32)words; i += 32u) st(base + i * 4u, in[i]);
  fence_async(); __syncwarp();
  if (threadIdx.x == 0) {
    if (rank == 1) asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%2}], [%1];" :: "l"(&map), "r"(base), "r"(x) : "memory");
    else tma_store(&map, base, x, 1);
    bulk_commit(); bulk_wait();
  }
}
"""
WIDTH, BOX = 256, 64


def answer(bench: Bench, case: str) -> dict[str, Any]:
    way, shape, dtype, _, start = case.split()
    rank, x = int(shape[0]), int(start)
    kind: type[np.unsignedinteger[Any]] = np.uint16 if dtype == "bf16" else np.uint32
    size = np.dtype(kind).itemsize
    values = np.arange(1, 4 * WIDTH + 1, dtype=kind)
    memory = Memory(values.view(np.uint32))
    dims, strides = (WIDTH, 2, 2)[:rank], (WIDTH * size, 2 * WIDTH * size)[: rank - 1]
    encoded = tensor_map(memory, f"UINT{8 * size}", dims, strides or (16,), (BOX, 1, 1)[:rank])
    words = BOX * size // 4
    row = WIDTH * (0, 1, 3)[rank - 1]
    inside = [i for i in range(BOX) if 0 <= x + i < WIDTH]
    if way == "store":
        given = np.arange(5001, 5001 + BOX, dtype=kind)
        bench.run("put", 1, 32, (encoded, Memory(given.view(np.uint32)), x, rank, words), smem=16384)
        wanted = values.copy()
        wanted[[row + x + i for i in inside]] = given[inside]
        return {"right": bool(np.array_equal(memory.read().view(kind), wanted))}
    out, flag = Memory(np.zeros(words, np.uint32)), Memory(np.zeros(1, np.uint32))
    bench.run("fetch", 1, 32, (encoded, out, x, rank, words, flag), smem=16384)
    expected = np.zeros(BOX, kind)
    expected[inside] = [values[row + x + i] for i in inside]
    return {"complete": int(flag.read()[0]) == 1, "right": bool(np.array_equal(out.read().view(kind), expected))}

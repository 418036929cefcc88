"""HW044: where in shared memory a box may land, and by what the copy engine exchanges its chunks when that is inside a pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Array, Bench, Memory, tensor_map

CONTRACT = "HW044"
ASKS = "a box of 16 rows lands at an offset from a multiple of 1,024 bytes: a fault, chunks exchanged by their address, or by their row"
SPANS = {"NONE": 128, "32B": 32, "64B": 64, "128B": 128}
CASES = tuple(f"{swizzle} at {offset}" for swizzle in SPANS for offset in (0, 16, 64, 128, 256, 512))
ROWS = 16

SOURCE = r"""
KERNEL land(const __grid_constant__ Map map, u32* out, int offset, int bytes, u32* flag) {
  const u32 base = pool(), bar = base + 8192u;
  for (u32 i = threadIdx.x; i < 2048u; i += 32u) st(base + i * 4u, 0xffffffffu);
  fence_async(); __syncwarp();
  if (threadIdx.x == 0) {
    mb_init(bar, 1u); fence_init(); mb_expect(bar, bytes);
    tma_load(base + offset, &map, 0, 0, bar);
    *flag = mb_wait(bar, 0u) ? 1u : 2u;
  }
  __syncwarp();
  for (u32 i = threadIdx.x; i < 2048u; i += 32u) out[i] = ld(base + i * 4u);
}
"""


def landed(values: Array, span: int, offset: int, by_address: bool) -> Array:
    """Words of shared memory with the box at an offset, its 16-byte chunks exchanged by bits 7 to 9 of their address, or of their place in the box."""
    out = np.full(2048, 0xFFFFFFFF, np.uint32)
    for at in range(0, ROWS * span, 16):
        start = at + (offset if by_address else 0)
        chunk = start ^ ((start >> 7 & (span // 16 - 1)) << 4)
        place = (chunk + (0 if by_address else offset)) // 4
        out[place : place + 4] = values[at // 4 : at // 4 + 4]
    return out


def answer(bench: Bench, case: str) -> dict[str, Any]:
    swizzle, _, start = case.split()
    span, offset = SPANS[swizzle], int(start)
    values = np.arange(1, ROWS * span // 4 + 1, dtype=np.uint32)
    memory, out, flag = Memory(values), Memory(np.zeros(2048, np.uint32)), Memory(np.zeros(1, np.uint32))
    encoded = tensor_map(memory, "UINT32", (span // 4, ROWS), (span,), (span // 4, ROWS), swizzle=swizzle)
    bench.run("land", 1, 32, (encoded, out, offset, ROWS * span, flag), smem=16384)
    found, width = out.read(), span if swizzle != "NONE" else 16
    ways = {"by address": landed(values, width, offset, True), "by place in the box": landed(values, width, offset, False)} if swizzle != "NONE" else {"as it is": _plain(values, offset)}
    return {"complete": int(flag.read()[0]) == 1, "chunks": " and ".join(n for n, want in ways.items() if np.array_equal(found, want)) or "otherwise"}


def _plain(values: Array, offset: int) -> Array:
    out = np.full(2048, 0xFFFFFFFF, np.uint32)
    out[offset // 4 : offset // 4 + len(values)] = values
    return out

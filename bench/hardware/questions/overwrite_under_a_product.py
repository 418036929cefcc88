"""HW063: a slot is handed back while wgmma still reads it: how many products must be in flight until the refill is what they multiply."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW063"
ASKS = "m64n256k16 products in flight read a tile that another warp overwrites as soon as it is told, by a store of its own or by a bulk copy"
COUNTS = (1, 4, 6, 8, 12, 16, 64)
CASES = tuple(f"{n} products, {by}{wait}" for n in COUNTS for by in ("stores", "a copy") for wait in ("", ", waited for") if not wait or n == 64)
ROUNDS = 500

_D = ", ".join(f"%{i}" for i in range(64))
_OUT = ", ".join(f'"+r"(d[{i}])' for i in range(64))
SOURCE = rf"""
DEVICE void product(u32* d, u64 a, u64 b, u32 more) {{
  asm volatile("wgmma.fence.sync.aligned;\n{{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16 {{{_D}}}, %64, %65, p, 1, 1, 0, 0; }}" : {_OUT} : "l"(a), "l"(b), "r"(more));
}}
// A (64 x 16) of ones and B (256 x 16) of 1/16 make every element the number of products; a NaN in the last rows of A shows.
KERNEL under(const u32* bad, u32* wrong, int products, int copies, int waits, int rounds) {{
  const u32 base = pool(), b = base + 2048u, told = base + 16384u, there = told + 8u, t = threadIdx.x;
  if (t == 0) {{ mb_init(told, 1u); mb_init(there, 1u); fence_init(); }}
  for (u32 j = t; j < 2048u; j += 160u) st(b + j * 4u, 0x2c002c00u);
  __syncthreads();
  u32 found = 0;
  for (int i = 0; i < rounds; ++i) {{
    if (t < 128u) for (u32 j = t; j < 512u; j += 128u) st(base + j * 4u, 0x3c003c00u);
    fence_async();
    __syncthreads();
    if (t < 128u) {{
      u32 d[64] = {{}};
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      #pragma unroll 1
      for (int n = 0; n < products; ++n) product(d, descriptor(base, 64u, 8u, 0u), descriptor(b, 256u, 8u, 0u), n != 0);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      if (waits) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (t == 0) mb_arrive(told);
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      #pragma unroll
      for (int n = 0; n < 64; ++n) found += (d[n] & 0x7fff7fffu) > 0x7c007c00u || (d[n] & 0x7fffu) > 0x7c00u;
    }} else if (t == 128u) {{
      mb_wait(told, i & 1);
      if (copies) {{ mb_expect(there, 2048u); bulk_load(base, bad, 2048u, there); mb_wait(there, i & 1); }}
      else for (u32 j = 0; j < 512u; j += 8u) st(base + j * 4u, 0x7fff7fffu);
    }}
    __syncthreads();
  }}
  if (found) atomicAdd(wrong, found);
}}
"""


def answer(bench: Bench, case: str) -> dict[str, Any]:
    bad, wrong = Memory(np.full(512, 0x7FFF7FFF, np.uint32)), Memory(np.zeros(1, np.uint32))
    bench.run("under", bench.sms, 160, (bad, wrong, int(case.split()[0]), int("a copy" in case), int("waited" in case), ROUNDS), smem=32768)
    return {"wrong_pairs": int(wrong.read()[0]), "of": bench.sms * ROUNDS * 128 * 64}

"""Kernels that run beside a mutant on silicon, so that what is late, shared or left behind shows.

`scrub` fills every multiprocessor's shared memory before a run. `hog` keeps the tensor cores busy: products take longer, so a stage
that is released under a running product is overwritten under it. `flood` keeps the memory system writing: copies out of shared memory
take longer, so bytes that change under a copy, or that belong to somebody else by then, are what gets copied. `stomp` is many short
CTAs that overwrite whatever shared memory becomes free, as soon as a CTA leaves with a copy still reading it.

`jam` stores to shared memory with every lane in one bank: other warps' stores and loads of shared memory queue behind.

All end by themselves: `hog`, `flood` and `jam` after a time, `stomp` after its grid.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cake_backend.judge.device.driver import Gpu, bindings, call
from cake_backend.judge.device.launcher import Module

SCRUB_BYTES = 227 * 1024
HOG_BYTES = 17 * 1024
JAM_BYTES = 4 * 1024
STOMP_BYTES = 16 * 1024
FLOOD_BYTES = 256 << 20
STOMPERS_PER_SM = 320

_ACCUMULATORS = ", ".join(f"%{i}" for i in range(32))
_OUTPUTS = ", ".join(f'"+f"(d[{i}])' for i in range(32))
SOURCE = f"""
typedef unsigned int u32; typedef unsigned long long u64;
extern __shared__ __align__(1024) unsigned words[];
static __device__ __forceinline__ u64 now() {{ u64 t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t; }}
extern "C" __global__ void __launch_bounds__(256, 1) scrub() {{
  for (u32 i = threadIdx.x; i < {SCRUB_BYTES // 4}u; i += 256u) ((volatile u32*)words)[i] = 0xffffffffu;
  __nanosleep(20000);
}}
extern "C" __global__ void __launch_bounds__(64) stomp() {{
  for (u32 i = threadIdx.x; i < {STOMP_BYTES // 4}u; i += 64u) ((volatile u32*)words)[i] = 0xffffffffu;
}}
extern "C" __global__ void __launch_bounds__(128) flood(uint4* memory, u64 nanoseconds) {{
  const u64 end = now() + nanoseconds;
  const u32 step = gridDim.x * 128u, count = {FLOOD_BYTES // 16}u;
  for (u32 i = blockIdx.x * 128u + threadIdx.x; now() < end; i += 8u * step)
    for (u32 j = 0; j < 8u; ++j) memory[(i + j * step) % count] = make_uint4(i, j, i, j);
}}
extern "C" __global__ void __launch_bounds__(128) hog(u64 nanoseconds) {{
  const u64 end = now() + nanoseconds;
  const u32 base = ((u32)__cvta_generic_to_shared(words) + 1023u) & ~1023u;
  const u64 a = ((base & 0x3ffffu) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62), b = a + (8192u >> 4);
  float d[32] = {{}};
  while (__syncthreads_and(now() < end)) {{  // all four warps go on or none: a product by some of them is illegal
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < 16; ++i)
      asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{_ACCUMULATORS}}}, %32, %33, 1, 1, 1, 0, 0;"
        : {_OUTPUTS} : "l"(a + 2u * (i & 3)), "l"(b + 2u * (i & 3)));
    asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  }}
  float sum = 0.0f;
  for (int i = 0; i < 32; ++i) sum += d[i];
  if (sum == 1.0f) words[0] = 1u;
}}
extern "C" __global__ void __launch_bounds__(128) jam(u64 nanoseconds) {{
  const u64 end = now() + nanoseconds;
  const u32 at = (u32)__cvta_generic_to_shared(words) + (threadIdx.x & 31u) * 128u;
  while (now() < end)
    for (u32 i = 0; i < 64u; ++i) asm volatile("st.shared.u32 [%0], %1;" :: "r"(at), "r"(i) : "memory");
}}
"""
"""NaN of every type is what `scrub` and `stomp` leave, so that nothing left behind passes for what was loaded."""


@dataclass(frozen=True)
class Mode:
    """What surrounds a run: whether the mutant sleeps at its waits, which kernels run beside it, and whether L2 was emptied."""

    name: str
    delays: bool = True
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    cold: bool = False


QUIET = Mode("quiet", delays=False)
MODES = (
    Mode("delays"),
    Mode("hog", delays=False, before=("hog",)),
    Mode("flood and delays", before=("flood",)),
    Mode("jam", delays=False, before=("jam",)),
    Mode("flood and stomp", delays=False, before=("flood",), after=("stomp",)),
    Mode("cold and delays, hog behind", after=("hog",), cold=True),
    Mode("jam behind, delays", after=("jam",)),
)
"""In turn; their number is odd, so that every mode meets every setting. The first run of all is quiet."""


def mode_of(run: int) -> Mode:
    return QUIET if run == 0 else MODES[run % len(MODES)]


class Neighbours:
    """The loaded kernels, on a stream of their own."""

    def __init__(self, gpu: Gpu, cubin: bytes, nanoseconds: int = 400_000) -> None:
        self.module, self.sms = Module(gpu, cubin), int(gpu.info["sms"])
        self.stream = call("cuStreamCreate", 1)
        self.memory = int(call("cuMemAlloc", FLOOD_BYTES))
        self.cold = int(gpu.info["l2_bytes"]) * 2 if int(gpu.info["l2_bytes"]) * 2 <= FLOOD_BYTES else FLOOD_BYTES
        time, memory = ctypes.c_uint64(nanoseconds), ctypes.c_uint64(self.memory)
        self.plans: Mapping[str, tuple[int, int, int, Sequence[Any]]] = {
            "scrub": (4 * self.sms, 256, SCRUB_BYTES, ()),
            "stomp": (STOMPERS_PER_SM * self.sms, 64, STOMP_BYTES, ()),
            "flood": (2 * self.sms, 128, 0, (memory, time)),
            "hog": (self.sms, 128, HOG_BYTES, (time,)),
            "jam": (4 * self.sms, 128, JAM_BYTES, (time,)),
        }
        attribute = bindings().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        for name, (_, _, nbytes, _) in self.plans.items():
            if nbytes > 48 * 1024:
                call("cuFuncSetAttribute", self.module.kernel(name), attribute, nbytes)

    def enqueue(self, name: str, stream: Any = None) -> None:
        grid, block, nbytes, arguments = self.plans[name]
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(*(ctypes.addressof(a) for a in arguments))
        on = self.stream if stream is None else stream
        call("cuLaunchKernel", self.module.kernel(name), grid, 1, 1, block, 1, 1, nbytes, on, ctypes.addressof(pointers), 0)

    def empty_cache(self, stream: Any) -> None:
        """Other lines fill the L2."""
        call("cuMemsetD32Async", self.memory, 0, self.cold // 4, stream)

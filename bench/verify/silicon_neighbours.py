"""Kernels that run beside a mutant on silicon, so that what is late, shared or left behind shows.

`scrub` fills every multiprocessor's shared memory before a run. `hog` keeps the tensor cores busy: products take longer, so a stage
that is released under a running product is overwritten under it. `flood` keeps the memory system writing: copies out of shared memory
take longer, so bytes that change under a copy, or that belong to somebody else by then, are what gets copied. `stomp` is many short
CTAs that overwrite whatever shared memory becomes free, as soon as a CTA leaves with a copy still reading it.

`jam` stores to shared memory with every lane in one bank: other warps' stores and loads of shared memory queue behind. `squat` is CTAs
that keep what they find in the shared memory they get, and count what changes in it: copies that land behind a CTA that has left.

`late` is the kernel before: it lets its dependents start at once and writes an input of theirs some time afterwards.

All end by themselves: `hog`, `flood` and `jam` after a time, the others after their grid.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.verify.silicon_inside import SWITCHES
from cake_backend.judge.device.driver import Gpu, bindings, call
from cake_backend.judge.device.launcher import Module

SCRUB_BYTES = 227 * 1024
HOG_BYTES = 33 * 1024
SQUAT_BYTES = 16 * 1024
SQUATTERS_PER_SM = 40
LATE_NANOSECONDS = 40_000
JAM_BYTES = 4 * 1024
STOMP_BYTES = 16 * 1024
FLOOD_BYTES = 256 << 20
STOMPERS_PER_SM = 320

_ACCUMULATORS = ", ".join(f"%{i}" for i in range(64))
_OUTPUTS = ", ".join(f'"+r"(d[{i}])' for i in range(64))
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
extern "C" __global__ void __launch_bounds__(256) hog(u64 nanoseconds) {{
  const u64 end = now() + nanoseconds;
  const u32 base = ((u32)__cvta_generic_to_shared(words) + 1023u) & ~1023u;
  const u64 a = ((base & 0x3ffffu) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);  // both operands are the same bytes: what comes out is nobody's
  u32 d[64] = {{}};
  while (__syncthreads_and(now() < end)) {{  // all warps go on or none: a product by some of them is illegal
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < 8; ++i)
      asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16 {{{_ACCUMULATORS}}}, %64, %65, 1, 1, 1, 0, 0;"
        : {_OUTPUTS} : "l"(a + 2u * (i & 3)), "l"(a + 2u * (i & 3)));
    asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  }}
  u32 sum = 0;
  for (int i = 0; i < 64; ++i) sum += d[i];
  if (sum == 1u) words[0] = 1u;
}}
extern "C" __global__ void __launch_bounds__(128) jam(u64 nanoseconds) {{
  const u64 end = now() + nanoseconds;
  const u32 at = (u32)__cvta_generic_to_shared(words) + (threadIdx.x & 31u) * 128u;
  while (now() < end)
    for (u32 i = 0; i < 64u; ++i) asm volatile("st.shared.u32 [%0], %1;" :: "r"(at), "r"(i) : "memory");
}}
extern "C" __global__ void __launch_bounds__(64) squat(u32* changed) {{
  for (u32 i = threadIdx.x; i < {SQUAT_BYTES // 4}u; i += 64u) words[i] = i * 0x9e3779b1u ^ blockIdx.x;
  const u64 end = now() + 8000ull;
  while (now() < end) {{}}
  u32 bad = 0;
  for (u32 i = threadIdx.x; i < {SQUAT_BYTES // 4}u; i += 64u) bad += ((volatile u32*)words)[i] != (i * 0x9e3779b1u ^ blockIdx.x);
  if (bad) atomicAdd(changed, bad);
}}
extern "C" __global__ void __launch_bounds__(256) late(u32* to, const u32* from, u64 count, u64 nanoseconds) {{
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const u64 end = now() + nanoseconds;
  while (now() < end) {{}}
  for (u64 i = blockIdx.x * 256u + threadIdx.x; i < count; i += gridDim.x * 256u) to[i] = from[i];
}}
"""
"""NaN of every type is what `scrub` and `stomp` leave, so that nothing left behind passes for what was loaded."""


@dataclass(frozen=True)
class Mode:
    """What surrounds a run: whether the mutant sleeps at its waits, which kernels run beside it, whether L2 was emptied, and if so whether some
    of the inputs were read again; and what is done inside the kernel (`silicon_inside.SWITCHES`)."""

    name: str
    delays: bool = True
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    cold: bool = False
    half: bool = False
    inside: tuple[str, ...] = ()

    @property
    def switches(self) -> int:
        return sum(SWITCHES[x] for x in self.inside)


QUIET = Mode("quiet", delays=False)
MODES = (
    Mode("delays, lag", inside=("lag",)),
    Mode("queue", delays=False, inside=("queue",)),
    Mode("stores behind prefetches", delays=False, inside=("prefetches",)),
    Mode("flood and delays", before=("flood",)),
    Mode("jam, queue", delays=False, before=("jam",), inside=("queue",)),
    Mode("half cold and squat, late loads", delays=False, after=("squat",), cold=True, half=True, inside=("late loads",)),
    Mode("hog, smudge, crowd", delays=False, before=("hog",), inside=("smudge", "crowd")),
    Mode("jam, smudge", delays=False, before=("jam",), inside=("smudge",)),
    Mode("smudge, stores behind prefetches", delays=False, inside=("smudge", "prefetches")),
    Mode("flood and stomp, smudge, stores behind stores", delays=False, before=("flood",), after=("stomp",), inside=("smudge", "stores")),
    Mode("jam behind, delays, smudge", after=("jam",), inside=("smudge",)),
    Mode("cold and delays, hog behind", after=("hog",), cold=True, inside=("prefetches", "stores")),
    Mode("smudge, crowd", delays=False, inside=("smudge", "crowd")),
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
        self.changed = int(call("cuMemAlloc", 16))
        call("cuMemsetD32", self.changed, 0, 4)
        time, memory, changed = ctypes.c_uint64(nanoseconds), ctypes.c_uint64(self.memory), ctypes.c_uint64(self.changed)
        self.plans: Mapping[str, tuple[int, int, int, Sequence[Any]]] = {
            "scrub": (4 * self.sms, 256, SCRUB_BYTES, ()),
            "stomp": (STOMPERS_PER_SM * self.sms, 64, STOMP_BYTES, ()),
            "flood": (2 * self.sms, 128, 0, (memory, time)),
            "hog": (self.sms, 128, HOG_BYTES, (time,)),
            "jam": (4 * self.sms, 128, JAM_BYTES, (time,)),
            "squat": (SQUATTERS_PER_SM * self.sms, 64, SQUAT_BYTES, (changed,)),
        }
        attribute = bindings().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        for name, (_, _, nbytes, _) in self.plans.items():
            if nbytes > 48 * 1024:
                call("cuFuncSetAttribute", self.module.kernel(name), attribute, nbytes)

    def enqueue(self, name: str, stream: Any = None) -> None:
        self._launch(name, *self.plans[name], self.stream if stream is None else stream)

    def late(self, to: int, source: int, nbytes: int, stream: Any) -> None:
        """Copy an input to where it belongs, after whatever depends on this has been let go."""
        arguments = [ctypes.c_uint64(x) for x in (to, source, -(-nbytes // 4), LATE_NANOSECONDS)]
        self._launch("late", 8, 256, 0, arguments, stream)

    def read_half(self, addresses: Sequence[tuple[int, int]], stream: Any) -> None:
        """Bring these (address, bytes) back into L2."""
        for address, nbytes in addresses:
            call("cuMemcpyDtoDAsync", self.memory, address, min(nbytes, FLOOD_BYTES), stream)

    def found_changed(self) -> int:
        """Words of shared memory that changed under a `squat` since the start."""
        word = (ctypes.c_uint32 * 1)()
        call("cuMemcpyDtoH", ctypes.addressof(word), self.changed, 4)
        return int(word[0])

    def _launch(self, name: str, grid: int, block: int, nbytes: int, arguments: Sequence[Any], on: Any) -> None:
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(*(ctypes.addressof(a) for a in arguments))
        call("cuLaunchKernel", self.module.kernel(name), grid, 1, 1, block, 1, 1, nbytes, on, ctypes.addressof(pointers), 0)

    def empty_cache(self, stream: Any) -> None:
        """Other lines fill the L2."""
        call("cuMemsetD32Async", self.memory, 0, self.cold // 4, stream)

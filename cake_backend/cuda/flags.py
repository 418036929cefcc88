"""Words of global memory by which CTAs of one launch tell each other how far they are."""

from __future__ import annotations

from cake_backend.cuda.mbarrier import TRAP_AFTER_POLLS
from cake_backend.cuda.preamble import Device, asm_call

FLAG_SIGNAL = asm_call("flag_signal", "int* flag, int value", "st.release.gpu.global.s32 [%0], %1;", '"l"(flag), "r"(value)')

FLAG_SPIN = Device(
    "flag_spin",
    f"""
DEVICE void flag_spin(const int* flag, int value) {{
  u32 polls = 0;
  int seen;
  #pragma unroll 1
  do {{
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    if (seen < value && ++polls == 0x{TRAP_AFTER_POLLS:x}u) {{ asm volatile("trap;"); __builtin_unreachable(); }}
  }} while (seen < value);
}}""",
)
"""Bounded, as every wait is."""

FENCE_PROXY_GLOBAL = asm_call("fence_proxy_async_global", "", "fence.proxy.async.global;", "")
"""Orders what was acquired from other threads' ordinary stores before later reads by the copy engine."""

"""HW067 without a GPU: where does the assembler drop one of several equal wgmma? `python -m bench.hardware.merged_products`.

Compiles the same products in several surroundings and counts HGMMA in the machine code. Writes `bench/results/hardware-assembler.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.hardware.ptx import HEAD
from cake_backend.toolchain import compile_cuda
from cake_backend.toolchain.sass import read_sass

RESULTS = Path(__file__).resolve().parents[1] / "results" / "hardware-assembler.json"
REGISTERS = 32
FENCE = 'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");'
DONE = 'asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");'
PRODUCT = (
    'asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {'
    + ", ".join(f"%{i}" for i in range(REGISTERS))
    + f'}}, %{REGISTERS}, %{REGISTERS + 1}, 1, 1, 1, 0, 0;" : '
    + ", ".join(f'"+f"(d[{i}])' for i in range(REGISTERS))
    + ' : "l"(a), "l"(b) : "memory");\n'
)
BRANCH = "if (n > 3) st(base, 1u);"
LOAD = f"\n#pragma unroll\nfor (int i = 0; i < {REGISTERS}; ++i) d[i] = __uint_as_float(in[i + n]);\n"
SURROUNDINGS: dict[str, tuple[str, int]] = {
    "straight from the kernel's entry": (FENCE + PRODUCT * 4 + DONE, 4),
    "straight, two": (FENCE + PRODUCT * 2 + DONE, 2),
    "straight, eight": (FENCE + PRODUCT * 8 + DONE, 8),
    "straight, behind a named barrier": ("sync(1, 128);" + FENCE + PRODUCT * 4 + DONE, 4),
    "straight, a fence between each": ((FENCE + PRODUCT) * 4 + DONE, 4),
    "behind a branch": (BRANCH + FENCE + PRODUCT * 4 + DONE, 4),
    "behind a branch, accumulators loaded again": (BRANCH + LOAD + FENCE + PRODUCT * 4 + DONE, 4),
    "behind a loop": ("\n#pragma unroll 1\nfor (int i = 0; i < n; ++i) st(base + i * 4u, in[i]);\n" + FENCE + PRODUCT * 4 + DONE, 4),
    "behind a wait on a barrier": ("while (!mb_test(base + 32768u, 0u));" + FENCE + PRODUCT * 4 + DONE, 4),
    "in a branch": ("if (n > 3) {" + FENCE + PRODUCT * 4 + DONE + "}", 4),
    "in a loop": ("\n#pragma unroll 1\nfor (int i = 0; i < n; ++i) {" + FENCE + PRODUCT * 4 + DONE + "}", 4),
}
"""By name: the statements, and how many products they hold."""


def kernel(body: str) -> str:
    return (
        HEAD
        + f"""
KERNEL products(const u32* in, float* out, int n) {{
  const u32 base = pool();
  st(base + threadIdx.x * 4u, in[threadIdx.x]); fence_async(); __syncthreads();
  float d[{REGISTERS}];
  #pragma unroll
  for (int i = 0; i < {REGISTERS}; ++i) d[i] = __uint_as_float(in[i]);
  const u64 a = descriptor(base, 1u, 64u, 1u), b = descriptor(base + 8192u, 1u, 64u, 1u);
  {body}
  #pragma unroll
  for (int i = 0; i < {REGISTERS}; ++i) out[threadIdx.x + 128 * i] = d[i];
}}"""
    )


def products_in(body: str) -> int | None:
    """HGMMA in the machine code; None where it cannot be read."""
    build = compile_cuda(kernel(body), "sm_90a", cache=None)
    assert build.cubin is not None, build.log
    reports = read_sass(build.cubin)
    return None if reports is None else sum(r.counts.get("HGMMA", 0) for r in reports.values())


def main() -> int:
    found: dict[str, Any] = {}
    for name, (body, written) in SURROUNDINGS.items():
        found[name] = {"written": written, "in_machine_code": products_in(body)}
        print(f"{name:<45} {found[name]}", flush=True)
    RESULTS.write_text(json.dumps({"command": "python -m bench.hardware.merged_products", "contract": "HW067", "surroundings": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

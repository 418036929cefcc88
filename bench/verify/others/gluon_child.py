"""One kernel of `gluon_kernels` with one mutation: `python3 -m bench.verify.others.gluon_child KERNEL MUTATION`, ConSan by its environment variable.

Prints `compiled` when the kernel is, and a result line. What ConSan asserts goes to stderr by itself.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import torch
import triton
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from bench.verify.others import gluon_kernels as kernels

PATIENCE = 6.0
"""Seconds until a kernel that has not ended counts as hanging; instrumented ones take a few milliseconds."""
M, N, K, STAGES = 128, 128, 512, 3


def descriptor(t: torch.Tensor) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(t, [64, 64], NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2))


def call(kernel: str, mutation: str) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """A function that launches, its output, and what that should be."""
    torch.manual_seed(3)
    options = {"STAGES": STAGES, "MUT": mutation, "num_warps": 4}
    if kernel == "ring_gemm":
        a, b = torch.randn(M, K, device="cuda", dtype=torch.float16), torch.randn(N, K, device="cuda", dtype=torch.float16)
        out = torch.full((M, N), float("nan"), device="cuda", dtype=torch.float16)
        run = lambda: kernels.ring_gemm[(M // 64, N // 64)](descriptor(a), descriptor(b), out, K // 64, N, **options)  # noqa: E731
        return run, out, a.double() @ b.double().T
    if kernel == "staged_double":
        x = torch.randn(M, K, device="cuda", dtype=torch.float16)
        out = torch.full((M, K), float("nan"), device="cuda", dtype=torch.float16)
        return lambda: kernels.staged_double[(M // 64,)](descriptor(x), descriptor(out), K // 64, **options), out, 2.0 * x.double()
    a, b = torch.randn(M, K, device="cuda", dtype=torch.float16), torch.randn(K, N, device="cuda", dtype=torch.float16)
    out = torch.full((M, N), float("nan"), device="cuda", dtype=torch.float32)
    return lambda: kernels.copy_ring[(M // 64, N // 64)](a, b, out, K // 32, K, N, **options), out, a.double() @ b.double()


def finished(seconds: float) -> bool:
    """Whether everything enqueued ends within a time."""
    event, end = torch.cuda.Event(), time.monotonic() + seconds
    event.record()
    while not event.query():
        if time.monotonic() > end:
            return False
        time.sleep(1e-3)
    return True


def main() -> None:
    kernel, mutation = sys.argv[1:3]
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    run, out, want = call(kernel, mutation)
    found: dict[str, Any] = {}
    started = time.monotonic()
    try:
        run()
        found["first_seconds"] = round(time.monotonic() - started, 2)
        print("compiled", flush=True)
        runs = 1 if os.environ.get("TRITON_INSTRUMENTATION_MODE") else 20
        ended, wrong = finished(PATIENCE), 0.0
        started = time.monotonic()
        for _ in range(runs if ended else 0):
            out.fill_(float("nan"))
            run()
            if not (ended := finished(PATIENCE)):
                break
            wrong = max(wrong, float((out.double() - want).abs().max() / want.abs().max()) if bool(torch.isfinite(out).all()) else float("inf"))
        found |= {"outcome": "hang" if not ended else "mismatch" if not wrong < 5e-3 else "clean", "detail": f"off by {wrong:.1e}", "seconds_a_run": round((time.monotonic() - started) / runs, 4)}
    except Exception as error:  # of the driver, or of the compiler
        found |= {"outcome": "fault", "detail": f"{type(error).__name__}: {error}"[:300]}
    print("RESULT " + json.dumps(found), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

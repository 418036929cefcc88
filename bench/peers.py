"""The implementations that Cake's kernels are compared with, by the names that tasks give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bench import hand_written
from bench.cake_runner import enqueue_all
from bench.harness import Contender
from cake_backend.judge.device.driver import Gpu

Sets = list[dict[str, torch.Tensor]]
EPS = 1e-6


def attempt(name: str, make: Callable[[], Contender]) -> Contender:
    """The contender, or one that carries the reason why it cannot take part."""
    try:
        return make()
    except Exception as error:  # a missing package or an unsuitable shape is a fact to report, whatever its type
        return Contender(name, lambda i: None, error=f"{type(error).__name__}: {error}"[:300])


def gemm_peers(sets: Sets, gpu: Gpu) -> list[Contender]:
    """cuBLAS through torch, and the hand-written kernels."""

    def cublas() -> Contender:
        return Contender("cublas", lambda i: torch.matmul(sets[i]["A"], sets[i]["B"].T, out=sets[i]["C"]), note="torch.matmul, B transposed")

    return [attempt("cublas", cublas), *_hand("g_", ("g_base", "g_cl1"), sets, gpu, lambda k, s: hand_written.gemm(k, s["A"], s["B"], s["C"]))]


def kmeans_peers(sets: Sets, gpu: Gpu) -> list[Contender]:
    """flash-kmeans 0.3.1 and flashlib 0.4.0 as shipped, and the hand-written kernels."""
    for s in sets:
        s["X_SQ"] = (s["X"].float() ** 2).sum(-1).contiguous()

    def flash_kmeans() -> Contender:
        from flash_kmeans.assign_euclid_triton import euclid_assign_triton

        def call(i: int) -> Any:
            s = sets[i]
            return euclid_assign_triton(s["X"], s["MU"], s["X_SQ"], out=s["IDX"], c_sq=s["MU_SQ"])

        return Contender("flash_kmeans", call, note="0.3.1, as shipped")

    def flashlib() -> Contender:
        from flashlib.primitives.kmeans import euclid_assign_triton

        def call(i: int) -> Any:
            s = sets[i]
            return euclid_assign_triton(s["X"], s["MU"], out=s["IDX"], c_sq=s["MU_SQ"])

        return Contender("flashlib", call, note="0.4.0, as shipped")

    def flashlib_swept() -> Contender:
        from flashlib.primitives.kmeans.triton.assign import euclid_assign_triton

        config = {"BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 4, "num_stages": 1}

        def call(i: int) -> Any:
            s = sets[i]
            return euclid_assign_triton(s["X"], s["MU"], s["IDX"], s["MU_SQ"], config=config)

        return Contender("flashlib_swept", call, note="0.4.0 with 128/64/4 warps/1 stage, the best of an earlier sweep")

    own = _hand("k_", ("k_base", "k_cl1", "k_n4x2"), sets, gpu, lambda k, s: hand_written.kmeans(k, s["X"], s["MU"], s["MU_SQ"], s["IDX"]))
    return [attempt("flash_kmeans", flash_kmeans), attempt("flashlib", flashlib), attempt("flashlib_swept", flashlib_swept), *own]


def rmsnorm_peers(sets: Sets, gpu: Gpu) -> list[Contender]:
    """torch.compile of the plain expression, and PyTorch's own kernel."""

    def plain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + EPS) * w.float()).bfloat16()

    def compiled() -> Contender:
        fast = torch.compile(plain, dynamic=False)

        def call(i: int) -> None:
            sets[i]["Y_compiled"] = fast(sets[i]["X"], sets[i]["W"])

        call(0)
        torch.cuda.synchronize()
        return Contender("torch_compile", call, note="inductor, static shape; allocates its output", outputs={"Y": "Y_compiled"})

    def own() -> Contender:
        def call(i: int) -> None:
            s = sets[i]
            s["Y_torch"] = torch.nn.functional.rms_norm(s["X"], (s["X"].shape[1],), s["W"], EPS)

        return Contender("torch_rms_norm", call, note="F.rms_norm; allocates its output", outputs={"Y": "Y_torch"})

    return [attempt("torch_compile", compiled), attempt("torch_rms_norm", own)]


def _hand(prefix: str, names: tuple[str, ...], sets: Sets, gpu: Gpu, launches: Callable[[Any, Any], Any]) -> list[Contender]:
    if hand_written.folder() is None:
        return [Contender(f"hand_{prefix}none", lambda i: None, kind="hand", error="CAKE_HAND_KERNELS names no folder")]
    found = []
    for name in names:

        def make(name: str = name) -> Contender:
            kernel = hand_written.HandKernel(name, gpu)
            prepared = [launches(kernel, s) for s in sets]
            return Contender(f"hand_{name}", lambda i: enqueue_all(prepared[i]), kind="hand", note=f"hand-written, {kernel.macros or 'as is'}")

        found.append(attempt(f"hand_{name}", make))
    return found


PEERS: dict[str, Callable[[Sets, Gpu], list[Contender]]] = {
    "gemm": gemm_peers,
    "kmeans_assign": kmeans_peers,
    "rmsnorm": rmsnorm_peers,
}
BASELINES: dict[str, tuple[str, ...]] = {
    "gemm": ("cublas", "hand_g_base", "hand_g_cl1"),
    "kmeans_assign": ("flash_kmeans", "flashlib", "flashlib_swept", "hand_k_base", "hand_k_cl1", "hand_k_n4x2"),
    "rmsnorm": ("torch_compile", "torch_rms_norm"),
}

"""The implementations that Cake's kernels are compared with, by the names that tasks give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from bench import flashinfer_tiny, hand_written
from bench.cake_runner import enqueue_all
from bench.harness import Contender
from cake_backend.judge.device.driver import Gpu

Sets = list[dict[str, torch.Tensor]]
Axes = Mapping[str, int]
EPS = 1e-6


def attempt(name: str, make: Callable[[], Contender]) -> Contender:
    """The contender, or one that carries the reason why it cannot take part."""
    try:
        return make()
    except Exception as error:  # a missing package or an unsuitable shape is a fact to report, whatever its type
        return Contender(name, lambda i: None, error=f"{type(error).__name__}: {error}"[:300])


def gemm_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """cuBLAS through torch, DeepGEMM, and the hand-written kernels."""

    def cublas() -> Contender:
        return Contender("cublas", lambda i: torch.matmul(sets[i]["A"], sets[i]["B"].T, out=sets[i]["C"]), note="torch.matmul, B transposed")

    def deep_gemm() -> Contender:
        import deep_gemm

        return Contender("deep_gemm", lambda i: deep_gemm.bf16_gemm_nt(sets[i]["A"], sets[i]["B"], sets[i]["C"]), note="sgl-deep-gemm 0.1.5, bf16_gemm_nt")

    def deep_gemm_pdl() -> Contender:
        import deep_gemm

        return _early(deep_gemm, lambda i: deep_gemm.bf16_gemm_nt(sets[i]["A"], sets[i]["B"], sets[i]["C"]))

    return [attempt("cublas", cublas), attempt("deep_gemm", deep_gemm), attempt("deep_gemm_pdl", deep_gemm_pdl), *_hand("g_", ("g_base", "g_cl1"), sets, gpu, lambda k, s: hand_written.gemm(k, s["A"], s["B"], s["C"]))]


def _early(deep_gemm: Any, plain: Callable[[int], Any]) -> Contender:
    """DeepGEMM with programmatic dependent launch: it starts while the kernel before ends, as Cake's schedules with `pdl_wait` do."""

    def call(i: int) -> None:
        deep_gemm.set_pdl(True)  # of the whole library, so it is taken back
        try:
            plain(i)
        finally:
            deep_gemm.set_pdl(False)

    return Contender("deep_gemm_pdl", call, note="the same with deep_gemm.set_pdl(True): it starts while the kernel before ends, as Cake's schedules with pdl_wait do")


def gemm_nn_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """cuBLAS through torch, and DeepGEMM."""

    def deep_gemm() -> Contender:
        import deep_gemm

        return Contender("deep_gemm", lambda i: deep_gemm.bf16_gemm_nn(sets[i]["A"], sets[i]["B"], sets[i]["C"]), note="sgl-deep-gemm 0.1.5, bf16_gemm_nn")

    def deep_gemm_pdl() -> Contender:
        import deep_gemm

        return _early(deep_gemm, lambda i: deep_gemm.bf16_gemm_nn(sets[i]["A"], sets[i]["B"], sets[i]["C"]))

    def cublas() -> Contender:
        return Contender("cublas", lambda i: torch.matmul(sets[i]["A"], sets[i]["B"], out=sets[i]["C"]), note="torch.matmul")

    return [attempt("cublas", cublas), attempt("deep_gemm", deep_gemm), attempt("deep_gemm_pdl", deep_gemm_pdl)]


def kmeans_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """flash-kmeans 0.3.1 and flashlib 0.4.0 (Triton, and CuTe DSL for one problem) as shipped, and the hand-written kernels."""
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

    def flashlib_cute() -> Contender:
        if axes["NB"] != 1:
            raise ValueError("takes one problem, not a batch")
        from flashlib.primitives.kmeans.cutedsl import cutedsl_assign_euclid

        def call(i: int) -> Any:
            s = sets[i]
            return cutedsl_assign_euclid(s["X"], s["MU"], out=s["IDX"], c_sq=s["MU_SQ"])

        call(0)
        torch.cuda.synchronize()
        return Contender("flashlib_cute", call, note="0.4.0, CuTe DSL as shipped; launches on a stream of its own, so timed eagerly only", graph=False)

    def launches(k: Any, s: Any) -> Any:
        if axes["D"] != 128 or axes["NK"] > 1024:
            raise ValueError("takes 128 dimensions and up to 1024 centroids")
        return hand_written.kmeans(k, s["X"], s["MU"], s["MU_SQ"], s["IDX"])

    own = _hand("k_", ("k_base", "k_cl1", "k_n4x2"), sets, gpu, launches)
    return [attempt("flash_kmeans", flash_kmeans), attempt("flashlib", flashlib), attempt("flashlib_swept", flashlib_swept), attempt("flashlib_cute", flashlib_cute), *own]


def _compiled(name: str, sets: Sets, plain: Callable[..., Any], inputs: tuple[str, ...], outputs: tuple[str, ...], **options: Any) -> Contender:
    """`torch.compile` of a plain function of the named tensors, static shapes; what it returns is left under `<output>_<name>`."""
    fast = torch.compile(plain, dynamic=False, options=options or None)
    return _allocating(name, sets, lambda s: fast(*(s[n] for n in inputs)), outputs, "inductor, static shape; allocates its output")


def _allocating(name: str, sets: Sets, run: Callable[[dict[str, torch.Tensor]], Any], outputs: tuple[str, ...], note: str) -> Contender:
    """A contender that allocates what it returns, one tensor for each of `outputs`; run once here, so that compiling is not timed."""

    def call(i: int) -> None:
        found = run(sets[i])
        for output, tensor in zip(outputs, found if isinstance(found, tuple) else (found,), strict=True):
            sets[i][f"{output}_{name}"] = tensor

    call(0)
    torch.cuda.synchronize()
    return Contender(name, call, note=note, outputs={o: f"{o}_{name}" for o in outputs})


def _rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + EPS) * w.float()).bfloat16()


def rmsnorm_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """torch.compile of the plain expression, PyTorch's own kernel, and Liger's."""

    def own() -> Contender:
        return _allocating("torch_rms_norm", sets, lambda s: torch.nn.functional.rms_norm(s["X"], (s["X"].shape[1],), s["W"], EPS), ("Y",), "F.rms_norm; allocates its output")

    def liger() -> Contender:
        from liger_kernel.ops import LigerRMSNormFunction

        return _allocating("liger", sets, lambda s: LigerRMSNormFunction.apply(s["X"], s["W"], EPS, 0.0, "gemma"), ("Y",), "liger-kernel, one rounding; allocates its output")

    return [attempt("torch_compile", lambda: _compiled("torch_compile", sets, _rms, ("X", "W"), ("Y",))), attempt("torch_rms_norm", own), attempt("liger", liger)]


def add_rmsnorm_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """torch.compile with the residual updated in place, and Liger's fused kernel, which writes a new one.

    Inductor drops a cast to bf16 and back unless told to keep it, and then normalises another sum than the one it stores.
    """

    def plain(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        total = (x.float() + r.float()).bfloat16()
        r.copy_(total)
        return _rms(total, w)

    def liger() -> Contender:
        from liger_kernel.ops import LigerFusedAddRMSNormFunction

        apply = LigerFusedAddRMSNormFunction.apply
        return _allocating(
            "liger", sets, lambda s: apply(s["X"], s["R"], s["W"], EPS, 0.0, "gemma", False), ("Y", "R"), "liger-kernel, one rounding; allocates both outputs"
        )

    return [attempt("torch_compile", lambda: _compiled("torch_compile", sets, plain, ("X", "R", "W"), ("Y",), emulate_precision_casts=True)), attempt("liger", liger)]


def softmax_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """PyTorch's own kernel, torch.compile, and Liger's."""

    def liger() -> Contender:
        from liger_kernel.ops import LigerSoftmaxFunction

        return _allocating("liger", sets, lambda s: LigerSoftmaxFunction.apply(s["X"]), ("Y",), "liger-kernel; allocates its output")

    return [
        attempt("torch_softmax", lambda: _allocating("torch_softmax", sets, lambda s: s["X"].softmax(-1), ("Y",), "Tensor.softmax; allocates its output")),
        attempt("torch_compile", lambda: _compiled("torch_compile", sets, lambda x: x.float().softmax(-1).bfloat16(), ("X",), ("Y",))),
        attempt("liger", liger),
    ]


def silu_mul_quant_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """torch.compile of the plain expression."""

    def plain(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        v = (torch.nn.functional.silu(x[:, 0].float()) * x[:, 1].float()).bfloat16()
        groups = v.float().view(v.shape[0], -1, 128)
        scale = groups.abs().amax(-1, keepdim=True).clamp_min(1e-4) / 448
        return (groups / scale).to(torch.float8_e4m3fn).view(v.shape), scale.squeeze(-1)

    return [attempt("torch_compile", lambda: _compiled("torch_compile", sets, plain, ("X",), ("Q", "SCALE")))]


def attention_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """FlashAttention-3 on tensors in its own (B, S, H, D) order, and PyTorch's cuDNN and FlashAttention-2 backends."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    causal, shared = bool(axes["CAUSAL"]), axes["G"] > 1

    def sdpa(name: str, backend: Any) -> Contender:
        def run(s: dict[str, torch.Tensor]) -> torch.Tensor:
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(s["Q"], s["K"], s["V"], is_causal=causal, enable_gqa=shared)

        return _allocating(name, sets, run, ("O",), f"SDPA, {backend}; allocates its output")

    def fa3() -> Contender:
        from fa3_fwd_interface import flash_attn_func

        for s in sets:
            for n in "QKV":
                s[f"{n}_bshd"] = s[n].transpose(1, 2).contiguous()

        def run(s: dict[str, torch.Tensor]) -> torch.Tensor:
            found = flash_attn_func(s["Q_bshd"], s["K_bshd"], s["V_bshd"], causal=causal)
            return (found[0] if isinstance(found, tuple) else found).transpose(1, 2)

        return _allocating("fa3", sets, run, ("O",), "fa3-fwd 0.0.3, inputs transposed beforehand; allocates its output")

    return [
        attempt("fa3", fa3),
        attempt("cudnn", lambda: sdpa("cudnn", SDPBackend.CUDNN_ATTENTION)),
        attempt("flash2", lambda: sdpa("flash2", SDPBackend.FLASH_ATTENTION)),
    ]


def gemm_fp8_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """DeepGEMM and cuBLASLt on the same blocks, and cuBLASLt with one scale a row, which is another computation."""
    m, n, blocks = axes["M"], axes["N"], axes["K"] // 128

    def deep_gemm() -> Contender:
        import deep_gemm

        for s in sets:
            s["SA_rows"], s["SB_blocks"] = s["SA"][:, :m].T, s["SB"].view(-1, blocks)  # (M, K/128) with stride 1 along M, as it wants it

        def call(i: int) -> None:
            s = sets[i]
            deep_gemm.fp8_gemm_nt((s["A"], s["SA_rows"]), (s["B"], s["SB_blocks"]), s["C"])

        call(0)
        torch.cuda.synchronize()
        return Contender("deep_gemm", call, note="sgl-deep-gemm 0.1.5, fp8_gemm_nt")

    def deep_gemm_pdl() -> Contender:
        import deep_gemm

        made = _early(deep_gemm, lambda i: deep_gemm.fp8_gemm_nt((sets[i]["A"], sets[i]["SA_rows"]), (sets[i]["B"], sets[i]["SB_blocks"]), sets[i]["C"]))
        made.call(0)
        torch.cuda.synchronize()
        return made

    def scaled_blocks() -> Contender:
        for s in sets:
            s["SA_cols"] = s["SA"][:, :m].T
            s["SB_cols"] = s["SB"].view(-1, blocks).T

        def run(s: dict[str, torch.Tensor]) -> torch.Tensor:
            return torch._scaled_mm(s["A"], s["B"].T, s["SA_cols"], s["SB_cols"], out_dtype=torch.bfloat16)

        return _allocating("scaled_mm_blocks", sets, run, ("C",), "torch._scaled_mm with the same blocks; allocates its output")

    def scaled_rows() -> Contender:
        for s in sets:
            s["SA_row"], s["SB_row"] = s["SA"][0, :m].reshape(m, 1).abs().contiguous(), s["SB"].abs()[:1].expand(n).reshape(1, n).contiguous()

        def run(s: dict[str, torch.Tensor]) -> torch.Tensor:
            return torch._scaled_mm(s["A"], s["B"].T, s["SA_row"], s["SB_row"], out_dtype=torch.bfloat16, use_fast_accum=True)

        made = _allocating("scaled_mm_rows", sets, run, ("C",), "torch._scaled_mm with one scale a row: another computation; allocates its output")
        made.compared = False
        return made

    return [attempt("deep_gemm", deep_gemm), attempt("deep_gemm_pdl", deep_gemm_pdl), attempt("scaled_mm_blocks", scaled_blocks), attempt("scaled_mm_rows", scaled_rows)]


def tiny_gemm_peers(sets: Sets, gpu: Gpu, axes: Axes) -> list[Contender]:
    """cuBLAS through torch, DeepGEMM, and FlashInfer's Cake-generated programs with and without programmatic dependent launch."""

    def deep_gemm() -> Contender:
        import deep_gemm

        return Contender("deep_gemm", lambda i: deep_gemm.bf16_gemm_nt(sets[i]["X"], sets[i]["W"], sets[i]["Y"]), note="sgl-deep-gemm 0.1.5, bf16_gemm_nt")

    def cublas() -> Contender:
        return Contender("cublas", lambda i: torch.matmul(sets[i]["X"], sets[i]["W"].T, out=sets[i]["Y"]), note="torch.matmul, W transposed")

    def flashinfer(end: str) -> Contender:
        launch, program = flashinfer_tiny.launcher(axes, end)
        return Contender(f"flashinfer{end.lower()}", lambda i: launch(sets[i]["X"], sets[i]["W"], sets[i]["Y"]), note=f"flashinfer-python 0.7.4, {program}")

    found = [attempt("cublas", cublas), attempt("deep_gemm", deep_gemm)]
    return found + [attempt(f"flashinfer{end.lower()}", lambda end=end: flashinfer(end)) for end in ("", "_PDL")]


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


PEERS: dict[str, Callable[[Sets, Gpu, Axes], list[Contender]]] = {
    "gemm": gemm_peers,
    "kmeans_assign": kmeans_peers,
    "rmsnorm": rmsnorm_peers,
    "add_rmsnorm": add_rmsnorm_peers,
    "softmax": softmax_peers,
    "silu_mul_quant": silu_mul_quant_peers,
    "attention": attention_peers,
    "gemm_nn": gemm_nn_peers,
    "gemm_fp8": gemm_fp8_peers,
    "tiny_gemm": tiny_gemm_peers,
}
BASELINES: dict[str, tuple[str, ...]] = {
    "gemm": ("cublas", "deep_gemm", "deep_gemm_pdl", "hand_g_base", "hand_g_cl1"),
    "kmeans_assign": ("flash_kmeans", "flashlib", "flashlib_swept", "flashlib_cute", "hand_k_base", "hand_k_cl1", "hand_k_n4x2"),
    "rmsnorm": ("torch_compile", "torch_rms_norm", "liger"),
    "add_rmsnorm": ("torch_compile", "liger"),
    "softmax": ("torch_softmax", "torch_compile", "liger"),
    "silu_mul_quant": ("torch_compile",),
    "attention": ("fa3", "cudnn"),
    "gemm_nn": ("cublas", "deep_gemm", "deep_gemm_pdl"),
    "gemm_fp8": ("deep_gemm", "deep_gemm_pdl", "scaled_mm_blocks", "scaled_mm_rows"),
    "tiny_gemm": ("cublas", "deep_gemm", "flashinfer", "flashinfer_pdl"),
}

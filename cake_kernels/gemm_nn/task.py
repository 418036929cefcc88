"""C[M,N] = A[M,K] @ B[K,N] in bf16 with f32 accumulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.task import Distribution, Peer, Task, Tensor
from cake_kernels.gemm.task import TASK as GEMM
from cake_kernels.gemm.task import oracle as product

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Array = np.ndarray[Any, Any]
    Make = Callable[[np.random.Generator, Mapping[str, int]], dict[str, Array]]


def oracle(inputs: Mapping[str, Array], axes: Mapping[str, int], rows: Array | None) -> dict[str, Array]:
    """That of `gemm` on the transpose of B."""
    return product({"A": inputs["A"], "B": inputs["B"].T}, axes, rows)


def _turned(make: Make) -> Make:
    def made(rng: np.random.Generator, axes: Mapping[str, int]) -> dict[str, Array]:
        pair = make(rng, axes)
        return {"A": pair["A"], "B": np.ascontiguousarray(pair["B"].T)}

    return made


TASK = Task(
    name="gemm_nn",
    doc="C = A @ B for bf16 matrices A[M,K] and B[K,N]; C[M,N] is bf16, sums are f32",
    axes=GEMM.axes,
    tensors={**GEMM.tensors, "B": Tensor(("K", "N"), "bf16", widens=True, doc="N is contiguous")},
    scalars=GEMM.scalars,
    shapes=GEMM.shapes,
    distributions=tuple(Distribution(d.name, _turned(d.make), d.exact, d.doc) for d in GEMM.distributions),
    tolerances=GEMM.tolerances,
    oracle=oracle,
    domain=GEMM.domain,
    flops=GEMM.flops,
    peers=(Peer("cuBLAS", "peers:cublas_nn", "torch.matmul of both as they lie"), Peer("DeepGEMM", "peers:deep_gemm_nn", "bf16_gemm_nn")),
)

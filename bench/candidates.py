"""Which schedules of the corpus are benchmarked, and with which parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class BenchCandidate:
    """A schedule of the corpus with parameters. `main` ones are the headline; the others show one cliff each."""

    name: str
    family: str
    schedule: str
    target: str = "sm_90a"
    params: Mapping[str, Any] = field(default_factory=dict)
    main: bool = True


CANDIDATES: tuple[BenchCandidate, ...] = (
    BenchCandidate("cake_gemm", "gemm", "hopper"),
    BenchCandidate("cake_gemm_stages3", "gemm", "hopper", params={"STAGES": 3}, main=False),
    BenchCandidate("cake_gemm_stages2", "gemm", "hopper", params={"STAGES": 2}, main=False),
    BenchCandidate("cake_gemm_depth0", "gemm", "hopper", params={"DEPTH": 0}, main=False),
    BenchCandidate("cake_gemm_bn128", "gemm", "hopper", params={"BN": 128}, main=False),
    BenchCandidate("cake_gemm_group1", "gemm", "hopper", params={"GROUP": 1}, main=False),
    BenchCandidate("cake_gemm_group16", "gemm", "hopper", params={"GROUP": 16}, main=False),
    BenchCandidate("cake_gemm_one_consumer", "gemm", "hopper", params={"MEMBERS": 1, "STAGES": 5}, main=False),
    BenchCandidate("cake_gemm_sm80", "gemm", "ampere", main=False),
    BenchCandidate("cake_kmeans", "kmeans_assign", "hopper"),
    BenchCandidate("cake_kmeans_resident", "kmeans_assign", "hopper_resident"),
    BenchCandidate("cake_kmeans_four", "kmeans_assign", "hopper", params={"MEMBERS": 4, "BN": 128, "REGS": 112, "LOAD_REGS": 32}, main=False),
    BenchCandidate("cake_kmeans_resident_four", "kmeans_assign", "hopper_resident", params={"MEMBERS": 4, "BN": 128, "REGS": 112, "LOAD_REGS": 32}, main=False),
    *(
        BenchCandidate(f"cake_rmsnorm_{d}_w{w}c{c}", "rmsnorm", "hopper", params={"D": d, "WARPS": w, "CTAS": c}, main=main)
        for d, w, c, main in (
            (2048, 4, 8, True), (2048, 8, 8, False), (4096, 8, 4, True), (4096, 16, 4, False), (7168, 14, 2, True), (7168, 28, 2, False),
            (8192, 16, 2, True), (8192, 32, 2, False),
        )
    ),
)

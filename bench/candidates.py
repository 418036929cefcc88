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
    BenchCandidate("cake_gemm_sm80", "gemm", "ampere", main=False),
    BenchCandidate("cake_kmeans", "kmeans_assign", "hopper"),
    BenchCandidate("cake_rmsnorm_2048", "rmsnorm", "hopper", params={"D": 2048}),
    BenchCandidate("cake_rmsnorm_4096", "rmsnorm", "hopper", params={"D": 4096}),
    BenchCandidate("cake_rmsnorm_7168", "rmsnorm", "hopper", params={"D": 7168}),
    BenchCandidate("cake_rmsnorm_8192", "rmsnorm", "hopper", params={"D": 8192}),
)

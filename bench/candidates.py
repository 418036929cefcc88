"""Which schedules of the corpus are benchmarked, and with which parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def _rows(family: str, axis: str) -> Iterator[BenchCandidate]:
    """Row kernels: a CTA for each row (`once`), rows by bulk copy in a ring (`ring`), and one warp a row (`warps`)."""
    if family != "rmsnorm":
        for d, warps, ctas, main in (
            (2048, 4, 8, True), (2048, 8, 8, False), (4096, 8, 4, True), (4096, 16, 2, False), (7168, 14, 2, True), (7168, 28, 2, False),
            (8192, 16, 2, True), (8192, 32, 2, False),
        ):  # fmt: skip
            yield BenchCandidate(f"cake_{family}_{d}_w{warps}c{ctas}", family, "hopper", params={axis: d, "WARPS": warps, "CTAS": ctas}, main=main)
    for d, warps, ctas in ((2048, 4, 8), (2048, 8, 8), (4096, 8, 4), (4096, 16, 4), (7168, 14, 3), (7168, 28, 2), (8192, 16, 3), (8192, 32, 2)):
        params = {axis: d, "WARPS": warps, "CTAS": ctas, "ONCE": True}
        yield BenchCandidate(f"cake_{family}_{d}_once_w{warps}c{ctas}", family, "hopper", params=params, main=False)
    half = 1 if family == "rmsnorm" else 2  # two rows a slot
    for d, warps, ctas, stages in (
        (2048, 4, 6, 8), (2048, 8, 4, 12), (2048, 8, 2, 24), (4096, 8, 3, 8), (4096, 16, 2, 12), (4096, 16, 1, 24), (7168, 14, 2, 6), (7168, 28, 1, 12),
        (8192, 16, 2, 6), (8192, 16, 1, 12),
    ):  # fmt: skip
        params = {axis: d, "WARPS": warps, "CTAS": ctas, "STAGES": stages // half}
        yield BenchCandidate(f"cake_{family}_{d}_ring_w{warps}c{ctas}s{stages // half}", family, "hopper_ring", params=params, main=False)
    if family == "rmsnorm":
        for d, warps, stages in ((2048, 7, 4), (2048, 11, 4)):
            params = {axis: d, "WARPS": warps, "STAGES": stages}
            yield BenchCandidate(f"cake_{family}_{d}_warps{warps}s{stages}", family, "hopper_ring_warps", params=params, main=False)


def _softmax() -> Iterator[BenchCandidate]:
    """Softmax: rows in registers with and without a ring, and rows that are read twice."""
    for n, warps, ctas, main in ((4096, 8, 4, False), (4096, 16, 4, False), (32768, 16, 1, False)):
        yield BenchCandidate(f"cake_softmax_{n}_w{warps}c{ctas}", "softmax", "hopper", params={"N": n, "WARPS": warps, "CTAS": ctas}, main=main)
    for n, warps, ctas, main in ((4096, 8, 4, True), (4096, 16, 4, False), (32768, 16, 1, False)):
        params = {"N": n, "WARPS": warps, "CTAS": ctas, "ONCE": True}
        yield BenchCandidate(f"cake_softmax_{n}_once_w{warps}c{ctas}", "softmax", "hopper", params=params, main=main)
    for n, warps, ctas, stages, main in ((4096, 8, 3, 8, False), (4096, 16, 2, 12, False), (32768, 16, 1, 3, True), (32768, 16, 1, 2, False)):
        params = {"N": n, "WARPS": warps, "CTAS": ctas, "STAGES": stages}
        yield BenchCandidate(f"cake_softmax_{n}_ring_w{warps}c{ctas}s{stages}", "softmax", "hopper_ring", params=params, main=main)
    for n, warps, part, main in ((131072, 32, 1024, True), (131072, 32, 512, False), (131072, 16, 2048, False), (32768, 32, 512, False)):
        params = {"N": n, "WARPS": warps, "PART": part}
        yield BenchCandidate(f"cake_softmax_{n}_long_w{warps}p{part}", "softmax", "hopper_long", params=params, main=main)


def _silu() -> Iterator[BenchCandidate]:
    """SiLU-mul and quantisation: warps a CTA, CTAs an SM, slots, groups taken in turn."""
    for warps, ctas, stages, groups, main in (
        (4, 2, 2, 4, True), (4, 2, 2, 8, False), (8, 1, 2, 4, False), (2, 4, 2, 4, False), (2, 3, 3, 4, False), (1, 5, 4, 4, False),
    ):  # fmt: skip
        params = {"WARPS": warps, "CTAS": ctas, "STAGES": stages, "GROUPS": groups}
        yield BenchCandidate(f"cake_silu_w{warps}c{ctas}s{stages}g{groups}", "silu_mul_quant", "hopper", params=params, main=main)


def _attention() -> Iterator[BenchCandidate]:
    """Attention: block width, members, query slots, turns, heads taken together; a headline for each head size and mask."""
    three = {"MEMBERS": 3, "REGS": 160, "LOAD_REGS": 32}
    variants: dict[tuple[int, bool], dict[str, dict[str, Any]]] = {
        (128, False): {
            "": {"BN": 176}, "bn160": {"BN": 160}, "bn160_q2": {"BN": 160, "QSTAGES": 2}, "bn128": {"BN": 128}, "bn128_q2": {"BN": 128, "QSTAGES": 2},
            "bn128_s3": {"BN": 128, "STAGES": 3}, "free": {"BN": 176, "PINGPONG": False}, "heads4": {"BN": 176, "GROUP": 4}, "once": {"BN": 176, "ONCE": True},
        },
        (128, True): {
            "": {"BN": 128, "QSTAGES": 2}, "q1": {"BN": 128}, "heads4": {"BN": 128, "QSTAGES": 2, "GROUP": 4}, "once": {"BN": 128, "QSTAGES": 2, "ONCE": True},
            "free": {"BN": 128, "QSTAGES": 2, "PINGPONG": False}, "bn176": {"BN": 176}, "bn160_q2": {"BN": 160, "QSTAGES": 2},
            "bn64": {"BN": 64, "STAGES": 4, "QSTAGES": 2},
        },
        (64, False): {
            "": {"BN": 192, "QSTAGES": 2}, "bn128": {"BN": 128, "QSTAGES": 2}, "bn176": {"BN": 176, "QSTAGES": 2}, "s3": {"BN": 192, "STAGES": 3},
            "free": {"BN": 192, "QSTAGES": 2, "PINGPONG": False}, "three": {"BN": 128, **three}, "three_q2s3": {"BN": 128, "QSTAGES": 2, "STAGES": 3, **three},
            "three_free": {"BN": 128, "PINGPONG": False, "QSTAGES": 2, **three}, "three_bn96": {"BN": 96, "QSTAGES": 2, "STAGES": 3, **three},
        },
        (64, True): {
            "": {"BN": 128, "QSTAGES": 2}, "heads4": {"BN": 128, "QSTAGES": 2, "GROUP": 4}, "bn192": {"BN": 192, "QSTAGES": 2},
            "free": {"BN": 128, "QSTAGES": 2, "PINGPONG": False}, "once": {"BN": 128, "QSTAGES": 2, "ONCE": True}, "three": {"BN": 128, "QSTAGES": 2, **three},
            "three_bn96": {"BN": 96, "QSTAGES": 2, "STAGES": 3, **three}, "three_free": {"BN": 128, "QSTAGES": 2, "PINGPONG": False, **three},
        },
    }  # fmt: skip
    for (d, causal), named in variants.items():
        for name, params in named.items():
            full = f"cake_fmha_d{d}{'_causal' if causal else ''}{'_' + name if name else ''}"
            yield BenchCandidate(full, "attention", "hopper", params={"D": d, "CAUSAL": causal, **params}, main=not name)


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
    *_rows("rmsnorm", "D"),
    *_rows("add_rmsnorm", "D"),
    *_softmax(),
    *_silu(),
    *_attention(),
)

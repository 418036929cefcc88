"""Which schedules of the corpus are benchmarked, and with which parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any


@dataclass(frozen=True, slots=True)
class BenchCandidate:
    """A schedule of the corpus with parameters. `main` ones are the headline; the others show one cliff each.

    `shapes` are patterns of the names of the benchmark shapes that it is meant for; empty means all.
    """

    name: str
    family: str
    schedule: str
    target: str = "sm_90a"
    params: Mapping[str, Any] = field(default_factory=dict)
    main: bool = True
    shapes: tuple[str, ...] = ()

    def takes(self, shape: str) -> bool:
        """Whether the benchmark shape of that name is one it is meant for."""
        return not self.shapes or any(fnmatch(shape, pattern) for pattern in self.shapes)


_ONCE: dict[str, tuple[tuple[int, int, int, str], ...]] = {  # D, warps, CTAs an SM, options; the first of each D is the headline
    "rmsnorm": (
        (2048, 4, 8, "keep early"), (2048, 4, 12, "keep early"), (2048, 4, 8, "early"), (2048, 4, 8, ""),
        (4096, 8, 6, "keep early"), (4096, 4, 8, "keep early"), (4096, 8, 4, "keep early"), (4096, 8, 6, "early"), (4096, 8, 6, ""),
        (7168, 7, 4, "keep early"), (7168, 14, 3, "keep early"), (7168, 7, 4, "late keep early"), (7168, 7, 4, "early"), (7168, 7, 4, ""),
        (8192, 8, 4, "keep early"), (8192, 16, 3, "keep early"), (8192, 8, 4, "early"), (8192, 8, 4, ""),
    ),
    "add_rmsnorm": (
        (2048, 8, 4, "keep early"), (2048, 8, 6, "keep early"), (2048, 4, 8, "keep early"), (2048, 8, 4, "early"), (2048, 8, 4, ""),
        (4096, 16, 3, "keep early"), (4096, 16, 2, "keep early"), (4096, 8, 4, "keep early"), (4096, 16, 3, "early"), (4096, 16, 3, ""),
        (7168, 14, 2, "keep early"), (7168, 7, 4, "keep early"), (7168, 14, 3, "keep early"), (7168, 14, 2, "early"), (7168, 14, 2, ""),
        (8192, 16, 2, "keep early"), (8192, 16, 3, "keep early"), (8192, 32, 2, "late keep early"), (8192, 16, 2, "early"), (8192, 16, 2, ""),
    ),
}  # fmt: skip
"""A CTA for each row: few threads with many bytes each, or many with few; one H200 prefers four 16-byte loads a thread, two of each input.

`late`: weights are fetched last; `keep`: what is read leaves the caches last; `early`: the next launch starts at the beginning of this one.
"""


def _rows(family: str) -> Iterator[BenchCandidate]:
    """Row kernels: a CTA for each row (`once`, the headline), rows in turn, rows by bulk copy in a ring, and one warp a row (`warps`)."""
    for d, warps, ctas in ((2048, 4, 8), (4096, 8, 4), (7168, 14, 2), (8192, 16, 2)):
        yield BenchCandidate(f"cake_{family}_{d}_w{warps}c{ctas}", family, "hopper", params={"D": d, "WARPS": warps, "CTAS": ctas}, main=False)
    seen: set[int] = set()
    for d, warps, ctas, options in _ONCE[family]:
        params = {"D": d, "WARPS": warps, "CTAS": ctas, "ONCE": True, **{o.upper(): True for o in options.split()}}
        name = "_".join((f"cake_{family}_{d}_once_w{warps}c{ctas}", *options.split()))
        yield BenchCandidate(name, family, "hopper", params=params, main=d not in seen)
        seen.add(d)
    half = 1 if family == "rmsnorm" else 2  # two rows a slot
    for d, warps, ctas, stages in ((2048, 4, 6, 8), (4096, 8, 3, 8), (7168, 14, 2, 6), (8192, 16, 2, 6)):
        params = {"D": d, "WARPS": warps, "CTAS": ctas, "STAGES": stages // half}
        yield BenchCandidate(f"cake_{family}_{d}_ring_w{warps}c{ctas}s{stages // half}", family, "hopper_ring", params=params, main=False)
    if family == "rmsnorm":
        for d, warps, stages in ((2048, 7, 4), (2048, 11, 4)):
            params = {"D": d, "WARPS": warps, "STAGES": stages}
            yield BenchCandidate(f"cake_{family}_{d}_warps{warps}s{stages}", family, "hopper_ring_warps", params=params, main=False)


def _softmax() -> Iterator[BenchCandidate]:
    """Softmax: rows in registers with and without a ring, exponentials once or twice, and rows that are read twice."""
    for n, warps, ctas, once, twice, stream, main in (
        (4096, 8, 4, False, False, True, False), (4096, 8, 4, True, False, True, True), (4096, 8, 6, True, False, True, False),
        (4096, 8, 8, True, False, True, False), (4096, 4, 8, True, False, True, False), (4096, 4, 8, True, True, True, False),
        (32768, 16, 1, True, False, True, False), (32768, 16, 2, True, True, True, True), (32768, 32, 1, True, True, True, False),
        (4096, 8, 4, True, False, False, False), (4096, 4, 8, True, True, False, False), (32768, 16, 2, True, True, False, False),
    ):  # fmt: skip
        name = f"cake_softmax_{n}{'_once' if once else ''}{'_twice' if twice else ''}_w{warps}c{ctas}{'' if stream else '_plain'}"
        params = {"N": n, "WARPS": warps, "CTAS": ctas, "ONCE": once, "TWICE": twice, "STREAM": stream}
        yield BenchCandidate(name, "softmax", "hopper", params=params, main=main)
        if not stream:
            yield BenchCandidate(f"{name}_early", "softmax", "hopper", params={**params, "EARLY": True}, main=False)
            yield BenchCandidate(f"{name}_keep_early", "softmax", "hopper", params={**params, "KEEP": True, "EARLY": True}, main=False)
    for n, warps, ctas, stages, twice, main in (
        (4096, 8, 3, 8, False, False), (32768, 16, 1, 3, False, False), (32768, 16, 1, 2, False, False), (32768, 16, 1, 3, True, False),
    ):  # fmt: skip
        params = {"N": n, "WARPS": warps, "CTAS": ctas, "STAGES": stages, "TWICE": twice}
        yield BenchCandidate(f"cake_softmax_{n}_ring{'_twice' if twice else ''}_w{warps}c{ctas}s{stages}", "softmax", "hopper_ring", params=params, main=main)
    for n, warps, part, main in ((131072, 32, 1024, True), (131072, 32, 512, False), (131072, 16, 2048, False), (32768, 32, 512, False)):
        params = {"N": n, "WARPS": warps, "PART": part}
        yield BenchCandidate(f"cake_softmax_{n}_long_w{warps}p{part}", "softmax", "hopper_long", params=params, main=main)
        both = {**params, "KEEP": True, "EARLY": True}
        yield BenchCandidate(f"cake_softmax_{n}_long_w{warps}p{part}_keep_early", "softmax", "hopper_long", params=both, main=False)


def _silu() -> Iterator[BenchCandidate]:
    """SiLU-mul and quantisation: warps a CTA, CTAs an SM, slots, groups taken in turn; the form for few rows; and the one without shared memory."""
    for warps, ctas, stages, groups, main in ((4, 2, 2, 8, True), (4, 2, 2, 4, False), (8, 1, 2, 4, False), (2, 4, 2, 4, False), (2, 4, 2, 8, False)):
        params = {"WARPS": warps, "CTAS": ctas, "STAGES": stages, "GROUPS": groups}
        yield BenchCandidate(f"cake_silu_w{warps}c{ctas}s{stages}g{groups}", "silu_mul_quant", "hopper", params=params, main=main)
    for warps, ctas, stages in ((4, 1, 1), (4, 2, 2), (8, 1, 2)):
        params = {"WARPS": warps, "CTAS": ctas, "STAGES": stages}
        yield BenchCandidate(f"cake_silu_few_w{warps}c{ctas}s{stages}", "silu_mul_quant", "hopper_few_rows", params=params, main=False, shapes=("bench_64*",))
    for warps, runs, ctas, stream, main in (
        (14, 1, 2, False, True), (7, 1, 4, False, False), (8, 1, 4, False, False), (4, 2, 8, False, True), (4, 1, 12, False, False),
        (14, 1, 2, True, False), (4, 2, 8, True, False),
    ):  # fmt: skip
        params = {"WARPS": warps, "RUNS": runs, "CTAS": ctas, "STREAM": stream}
        name = f"cake_silu_rows_w{warps}r{runs}c{ctas}{'_stream' if stream else ''}"
        yield BenchCandidate(name, "silu_mul_quant", "hopper_rows", params=params, main=main)
        yield BenchCandidate(f"{name}_early", "silu_mul_quant", "hopper_rows", params={**params, "EARLY": True}, main=False)
        if not stream:
            yield BenchCandidate(f"{name}_keep_early", "silu_mul_quant", "hopper_rows", params={**params, "KEEP": True, "EARLY": True}, main=False)


def _attention() -> Iterator[BenchCandidate]:
    """Attention: a lagging reference in two parts of the columns (`lag..`) or a running maximum (`max..`), columns whose exponentials are polynomials (`poly..`).

    `st`: O is staged apart from Q, as always at D = 128. Causal ones deal the last heads out singly, `pairs` does not; `deal264` does so with twice as many. At D = 64 causal ones leave out blocks that a member does not see.
    """
    three = {"BN": 128, "MEMBERS": 3, "STAGES": 4, "QSTAGES": 2, "REGS": 160, "LOAD_REGS": 32}
    staged = {"BN": 128, "QSTAGES": 2, "STAGED": True}
    deal, seen, own = {"DEAL": 132}, {"SKIP": True}, {"STAGED": True}

    def lag(columns: int, poly: int = 0) -> dict[str, Any]:
        return {"LAG": True, "SPLIT": columns, "POLY": poly}

    variants: dict[tuple[int, bool], dict[str, dict[str, Any]]] = {
        (128, False): {
            "": {**staged, **lag(32, 16)}, "lag32": {**staged, **lag(32)}, "poly32": {**staged, **lag(32, 32)}, "lag64": {**staged, **lag(64)},
            "lag64_poly16": {**staged, **lag(64, 16)}, "lag16_poly32": {**staged, **lag(16, 32)}, "lag16_poly16": {**staged, **lag(16, 16)}, "max": staged,
        },
        (128, True): {
            "": {**staged, **lag(32, 16), **deal}, "lag32": {**staged, **lag(32), **deal}, "poly32": {**staged, **lag(32, 32), **deal},
            "lag64_poly16": {**staged, **lag(64, 16), **deal}, "lag16_poly32": {**staged, **lag(16, 32), **deal}, "max": {**staged, **deal},
            "pairs": {**staged, **lag(32, 16)}, "deal264": {**staged, **lag(32, 16), "DEAL": 264},
        },
        (64, False): {
            "": {**three, **lag(32, 16)}, "lag32": {**three, **lag(32)}, "poly32": {**three, **lag(32, 32)}, "lag64_poly16": {**three, **lag(64, 16)},
            "lag16_poly32": {**three, **lag(16, 32)}, "st": {**three, **lag(32, 16), **own}, "max": three, "poly32_st": {**three, **lag(32, 32), **own},
        },
        (64, True): {
            "": {**three, **seen, **deal, **lag(32, 16)}, "lag32": {**three, **seen, **deal, **lag(32)}, "poly32": {**three, **seen, **deal, **lag(32, 32)},
            "st": {**three, **seen, **deal, **lag(32, 16), **own}, "lag16_poly32": {**three, **seen, **deal, **lag(16, 32)},
            "max": {**three, **seen, **deal}, "max_st": {**three, **seen, **deal, **own}, "max_deal264": {**three, **seen, "DEAL": 264},
        },
    }  # fmt: skip
    for (d, causal), named in variants.items():
        for name, params in named.items():
            full = f"cake_fmha_d{d}{'_causal' if causal else ''}{'_' + name if name else ''}"
            yield BenchCandidate(full, "attention", "hopper", params={"D": d, "CAUSAL": causal, **params}, main=name == ("lag32" if d == 128 else "st"))


def _gemm_llm() -> Iterator[BenchCandidate]:
    """bf16 GEMM: widths that fill the SMs at few rows, and the next launch started early."""
    widths: tuple[tuple[str, dict[str, Any], bool, tuple[str, ...]], ...] = (
        ("bn160", {"BN": 160, "CW": 32, "STAGES": 5}, True, ("m256_n10240_*",)), ("bn176", {"BN": 176, "CW": 176, "CSTAGES": 1}, True, ("m256_n57344_*",)),
        ("bn224", {"BN": 224, "CW": 32}, False, ("m256_n57344_*",)), ("bn128s6", {"BN": 128, "STAGES": 6}, True, ("m256_n8192_*",)),
        ("bn80", {"BN": 80, "CW": 80, "CSTAGES": 1, "STAGES": 7}, False, ("m256_n5120_*",)),
    )  # fmt: skip
    for name, params, main, shapes in widths:
        for end, more in (("", {}), ("_early", {"EARLY": True}), ("_c2_early", {"EARLY": True, "CLUSTER": 2})):
            yield BenchCandidate(f"cake_gemm_{name}{end}", "gemm", "hopper", params={**params, **more}, main=main and end in ("", "_early"), shapes=shapes)
    yield BenchCandidate("cake_gemm_share_128x160", "gemm", "hopper_share", params={"STAGES": 6}, shapes=("m256_n5120_*",))
    for end, more in (("_early", {"EARLY": True}), ("_c2_early", {"EARLY": True, "CLUSTER": 2})):
        yield BenchCandidate(f"cake_gemm{end}", "gemm", "hopper", params=more, main=False, shapes=("square_*", "m2048_*", "m4096_*"))


def _gemm_nn() -> Iterator[BenchCandidate]:
    """bf16 GEMM on a B with N contiguous: the tiles of `_gemm_llm`, where the width is no multiple of 64 in whole panels of 64 columns (`p64`) or in narrower ones."""
    early, pair = {"EARLY": True}, {"EARLY": True, "CLUSTER": 2}
    large = ("square_*", "m2048_*", "m4096_*")
    w160, w176 = {"BN": 160, "CW": 32, "STAGES": 5}, {"BN": 176, "CW": 176, "CSTAGES": 1}
    for name, schedule, params, shapes, main in (
        ("", "hopper", {}, large, True), ("_early", "hopper", early, large, True), ("_c2_early", "hopper", pair, large, True),
        ("_bn128s6", "hopper", {"BN": 128, "STAGES": 6}, ("m256_n8192_*",), True), ("_bn128s6_early", "hopper", {"BN": 128, "STAGES": 6, **early}, ("m256_n8192_*",), True),
        ("_bn128s6_c2_early", "hopper", {"BN": 128, "STAGES": 6, **pair}, ("m256_n8192_*",), True),
        ("_bn160p64_early", "hopper", {**w160, **early}, ("m256_n10240_*",), True), ("_bn160p64_c2_early", "hopper", {**w160, **pair}, ("m256_n10240_*",), True),
        ("_bn160p32_early", "hopper", {**w160, "PANEL": 32, **early}, ("m256_n10240_*",), True),
        ("_bn160p32_c2_early", "hopper", {**w160, "PANEL": 32, **pair}, ("m256_n10240_*",), True),
        ("_bn176p64", "hopper", w176, ("m256_n57344_*",), True), ("_bn176p64_c2_early", "hopper", {**w176, **pair}, ("m256_n57344_*",), True),
        ("_bn176p16", "hopper", {**w176, "PANEL": 16}, ("m256_n57344_*",), True), ("_bn224p32_c2_early", "hopper", {"BN": 224, "CW": 32, "PANEL": 32, **pair}, ("m256_n57344_*",), True),
        ("_share_128x160p64", "hopper_share", {}, ("m256_n5120_*",), True), ("_share_128x160p32", "hopper_share", {"PANEL": 32, "STAGES": 6}, ("m256_n5120_*",), True),
        ("_lines_share_128x160", "hopper_lines_share", {}, ("m256_n5120_*",), True),
        ("_depth0", "hopper", {"DEPTH": 0}, ("square_4096",), False), ("_group16", "hopper", {"GROUP": 16}, ("square_4096",), False),
    ):  # fmt: skip
        yield BenchCandidate(f"cake_gemm_nn{name}", "gemm_nn", schedule, params=params, main=main, shapes=shapes)


def _gemm_fp8() -> Iterator[BenchCandidate]:
    """FP8 GEMM: tile shapes, turns and clusters where there are many tiles; where there are few, K shared by the warpgroups of a CTA, or by a cluster too."""
    large, wide = ("m4096_n4096_*", "m4096_n7168_*", "m4096_n24576_*", "square_*"), {"BN": 192, "STAGES": 4, "REGS": 232, "LOAD_REGS": 24, "UNROLL": 4}
    mixed = ("m4096_n2112_*", "m4096_n24576_*")
    stream = {"HINT": "stream"}
    for name, schedule, params, shapes, main in (
        ("halves_128x256", "hopper_halves", {"UNROLL": 4}, large, True),
        ("halves_128x256_turns", "hopper_halves", {"UNROLL": 4, "LEAD": 64}, large, True),
        ("halves_128x256_c2", "hopper_halves", {"UNROLL": 4, "CLUSTER": 2}, ("m4096_n4096_*", "square_8192"), False),
        ("128x192_turns", "hopper_turns", wide, mixed, True),
        ("128x192", "hopper_turns", {**wide, "LEAD": 0}, mixed, True),
        ("128x192_tables_rows", "hopper_tables", {"ROWS": 2}, ("m256_n24576_*",), True),  # 256 tiles
        ("128x112_single", "hopper_single", {}, ("m256_n7168_k2048",), True),  # 128 tiles
        ("tall_share2_256x112", "hopper_tall_share", {}, ("m256_n7168_k16384",), True),
        ("share2_128x128_first_rows", "hopper_share", {"KMAX": 56, "ROWS": 2}, ("m256_n4096_*",), True),  # 64 clusters
        ("split_64x64_m2", "hopper_split", {"UNROLL": 4, "KMAX": 64, "ROWS": 4, "FIRST": 1}, ("m256_n2112_*",), True),  # 132 tiles
        ("split_64x64_m2_two", "hopper_split", {"UNROLL": 4, "KMAX": 64, "ROWS": 4, "FIRST": 2}, ("m256_n2112_*",), False),
        ("split_64x56_m2", "hopper_split", {"BN": 56, "STAGES": 6, "UNROLL": 4, "ROWS": 1, "FIRST": 3, **stream}, ("m64_n7168_k2048",), True),  # 128 tiles
        ("split_64x56_m2_warm_u8", "hopper_split", {"BN": 56, "STAGES": 6, "UNROLL": 8, "ROWS": 1, "WARM": True, **stream}, ("m64_n7168_k16384",), True),
        ("split_64x64_three", "hopper_split", {"STAGES": 4, "MEMBERS": 1, "CTAS": 3, "UNROLL": 4, "KMAX": 16, "ROWS": 1, "FIRST": 1, "WARM": True, **stream}, ("m64_n24576_*",), True),  # 384 tiles, three an SM
        ("relay2_64x64", "hopper_relay", {"UNROLL": 7, "LATE": 9, "KMAX": 64, "ROWS": 1}, ("m64_n4096_*",), True),  # 64 clusters
        ("relay2_64x32_m2", "hopper_relay", {"BN": 32, "MEMBERS": 2, "ASTAGES": 4, "BSTAGES": 5, "LATE": 5, "UNROLL": 7, "KMAX": 64, "ROWS": 1}, ("m64_n2112_*",), True),  # 66 clusters
        ("plain_128x128", "hopper", {}, ("square_4096",), False),
    ):  # fmt: skip
        yield BenchCandidate(f"cake_fp8_{name}", "gemm_fp8", schedule, params=params, main=main, shapes=shapes)


def _kmeans() -> Iterator[BenchCandidate]:
    """k-means assignment: two members of 256 centroids a chunk or four of 128; norms resident where they fit; long vectors in slices."""
    four = {"MEMBERS": 4, "BN": 128, "REGS": 112, "LOAD_REGS": 32}
    resident = ("assign_2m*", "assign_8k_b32")
    d64 = {"D": 64, "STAGES": 4, "XSTAGES": 3}
    late, early = {"LATE": True}, {"EARLY": True}
    for name, schedule, params, shapes, main in (
        ("", "hopper", {}, (), True), ("_late", "hopper", late, (), False), ("_resident", "hopper_resident", {}, resident, True),
        ("_four", "hopper", four, (), False), ("_four_late", "hopper", {**four, **late}, (), False), ("_four_early", "hopper", {**four, **early}, (), False),
        ("_four_late_early", "hopper", {**four, **late, **early}, (), False), ("_resident_four", "hopper_resident", four, resident, False),
        ("_resident_four_late", "hopper_resident", {**four, **late}, resident, False), ("_d64", "hopper", d64, (), True),
        ("_d64_four", "hopper", {**d64, **four}, (), True), ("_d64_four_early", "hopper", {**d64, **four, **early}, (), False),
        ("_d64_four_late", "hopper", {**d64, **four, **late}, (), False),
        ("_d64_resident_four_late", "hopper_resident", {**d64, **four, "NKMAX": 256, **late}, (), False),
        ("_d512", "hopper_deep", {}, (), True),
        ("_d512_early", "hopper_deep", early, (), False), ("_d512_bn128", "hopper_deep", {"BN": 128, "STAGES": 5}, (), False),
    ):  # fmt: skip
        yield BenchCandidate(f"cake_kmeans{name}", "kmeans_assign", schedule, params=params, main=main, shapes=shapes)


def _tiny_gemm() -> Iterator[BenchCandidate]:
    """GEMM of few rows: weight rows a CTA so that the CTAs fill the SMs once, warps that share K, slots."""
    narrow = ("*_n128_*", "*_n256_*", "*_n384_*", "*_n512_*", "*_n1024_*")
    for bn, warps, stages, ctas, shapes, main in (
        (8, 8, 8, 1, narrow, True), (8, 16, 4, 1, narrow, False), (8, 4, 16, 1, narrow, False),  # 512, 1,024 and 256 columns a slot
        (8, 9, 7, 1, ("*_k2880",), False), (8, 15, 4, 1, ("*_n128_k2880", "*_n512_k2880"), False),  # 2,880 columns are 5 slots of 9 panels, 3 of 15
        (16, 8, 6, 1, ("*_n2112_*", "*_n2048_*", "*_n2880_*"), True), (16, 4, 12, 1, ("*_n2112_*", "*_n2048_*"), False),  # 132 and 128 CTAs
        (16, 16, 3, 1, ("*_n2112_*", "*_n2048_*"), False),
        (16, 8, 3, 2, ("*_n2112_*", "*_n2048_*", "*_n2880_*", "*_n5120_*"), False),  # two CTAs an SM where there are more than SMs
        (24, 8, 5, 1, ("*_n2880_*",), True), (24, 4, 10, 1, ("*_n2880_*",), False),  # 120 CTAs
        (40, 4, 7, 1, ("*_n5120_*",), True), (40, 8, 3, 1, ("*_n5120_*",), False), (24, 4, 5, 2, ("*_n5120_*",), False),  # 128 and 214 CTAs
    ):  # fmt: skip
        params = {"BN": bn, "WARPS": warps, "STAGES": stages, "CTAS": ctas}
        yield BenchCandidate(f"cake_tiny_{bn}_w{warps}s{stages}c{ctas}", "tiny_gemm", "hopper", params=params, main=main, shapes=shapes)
    for split, bn, warps, stages, shapes in (  # clusters share K: 128 CTAs also where there are few columns
        (8, 8, 14, 1, ("*_n128_k7168", "*_n256_*")), (8, 8, 7, 2, ("*_n128_k7168", "*_n256_*")), (4, 8, 14, 2, ("*_n128_k7168", "*_n256_*", "*_n384_*")),
        (8, 16, 7, 2, ("*_n256_*",)), (8, 16, 14, 1, ("*_n256_*",)), (8, 24, 7, 2, ("*_n384_*",)), (4, 16, 14, 2, ("*_n384_*",)), (2, 8, 14, 4, ("*_n384_*",)),
        (8, 8, 6, 1, ("*_n128_k2880",)), (4, 8, 6, 2, ("*_n128_k2880", "*_n512_*")), (4, 8, 12, 1, ("*_n128_k2880", "*_n512_*")),
        (4, 16, 6, 2, ("*_n512_*",)), (2, 8, 8, 3, ("*_n512_*",)), (2, 8, 12, 2, ("*_n512_*",)), (2, 16, 8, 2, ("*_n1024_*",)), (2, 8, 16, 1, ("*_n1024_*",)),
    ):
        params = {"SPLIT": split, "BN": bn, "WARPS": warps, "STAGES": stages}
        yield BenchCandidate(f"cake_tiny_send{split}_{bn}_w{warps}s{stages}", "tiny_gemm", "hopper_send", params=params, shapes=shapes)
    up_to_8 = "m[148]_"
    for warps, stages, ctas, shapes in (  # 8 rows of X a slot, weights as the rows of the product
        (8, 8, 1, ("n128_*", "n256_*", "n384_*", "n512_*", "n1024_*", "n2112_*", "n2048_*")), (4, 16, 1, ("n2112_*", "n2048_*")),
        (16, 4, 1, ("n1024_*", "n2112_*")), (8, 4, 2, ("n2880_*", "n5120_*")), (4, 8, 2, ("n2880_*", "n5120_*")),
    ):  # fmt: skip
        params = {"WARPS": warps, "STAGES": stages, "CTAS": ctas}
        patterns = tuple(up_to_8 + s for s in shapes)
        yield BenchCandidate(f"cake_tiny_few_w{warps}s{stages}c{ctas}", "tiny_gemm", "hopper_few", params=params, shapes=patterns)
    for split, warps, stages, shapes in (
        (4, 14, 2, ("n128_k7168", "n256_*", "n384_*")), (8, 7, 2, ("n128_k7168", "n256_*", "n384_*")), (8, 14, 1, ("n128_k7168", "n256_*", "n384_*")),
        (4, 7, 4, ("n256_*", "n384_*")), (2, 14, 4, ("n384_*",)),
        (4, 12, 1, ("n128_k2880", "n512_*")), (8, 6, 1, ("n128_k2880", "n512_*")), (4, 6, 2, ("n128_k2880", "n512_*")), (2, 12, 2, ("n512_*",)),
        (2, 16, 1, ("n1024_*",)), (2, 8, 2, ("n1024_*",)), (4, 8, 1, ("n1024_*",)),
    ):  # fmt: skip
        params = {"SPLIT": split, "WARPS": warps, "STAGES": stages}
        patterns = tuple(up_to_8 + s for s in shapes)
        yield BenchCandidate(f"cake_tiny_few_send{split}_w{warps}s{stages}", "tiny_gemm", "hopper_few_send", params=params, shapes=patterns)
    for name, schedule, params, shapes in (  # the same without letting the next kernel start early
        ("8_w8s8c1", "hopper", {"BN": 8}, ("m16_n512_*",)), ("16_w8s6c1", "hopper", {"BN": 16, "STAGES": 6}, ("m16_n2112_*",)),
        ("rows1_k3072_w12c4", "hopper_rows", {"MR": 1, "CTAS": 4}, ("m1_n128_k2880",)),
    ):  # fmt: skip
        yield BenchCandidate(f"cake_tiny_{name}_late", "tiny_gemm", schedule, params={**params, "EARLY": False}, main=False, shapes=shapes)
    for mr, kc, warps, ctas, shapes in (  # a CTA a column, no tensor core: the least latency, 16 bytes a thread and row in flight at once
        (1, 3072, 12, 4, ("m1_n128_k2880", "m1_n512_k2880")), (4, 3072, 12, 3, ("m[14]_n128_k2880", "m[14]_n512_k2880")),
        (8, 3072, 12, 2, ("m8_n128_k2880", "m8_n512_k2880")), (1, 7168, 28, 2, ("m1_n128_*", "m1_n256_*", "m1_n384_*")),
        (4, 7168, 28, 2, ("m[14]_n128_k7168", "m[14]_n256_*", "m[14]_n384_*")), (8, 7168, 28, 1, ("m8_n128_k7168", "m8_n256_*", "m8_n384_*")),
        (1, 7168, 14, 4, ("m1_n128_k7168", "m1_n256_*", "m1_n384_*", "m1_n2112_*")),
        (1, 14336, 28, 2, ("m1_n2048_*",)), (1, 14336, 14, 4, ("m1_n2048_*",)), (1, 4096, 16, 4, ("m1_n2880_*",)), (1, 4096, 8, 8, ("m1_n2880_*",)),
        (1, 3072, 12, 5, ("m1_n5120_*",)), (1, 3072, 6, 8, ("m1_n5120_*", "m1_n512_*")), (1, 2048, 8, 8, ("m1_n1024_*",)), (4, 2048, 8, 5, ("m[14]_n1024_*",)),
    ):  # fmt: skip
        params = {"MR": mr, "KC": kc, "WARPS": warps, "CTAS": ctas}
        yield BenchCandidate(f"cake_tiny_rows{mr}_k{kc}_w{warps}c{ctas}", "tiny_gemm", "hopper_rows", params=params, main=warps != 14, shapes=shapes)


CANDIDATES: tuple[BenchCandidate, ...] = (
    BenchCandidate("cake_gemm", "gemm", "hopper"),
    BenchCandidate("cake_gemm_stages3", "gemm", "hopper", params={"STAGES": 3}, main=False, shapes=("square_*",)),
    BenchCandidate("cake_gemm_stages2", "gemm", "hopper", params={"STAGES": 2}, main=False, shapes=("square_*",)),
    BenchCandidate("cake_gemm_depth0", "gemm", "hopper", params={"DEPTH": 0}, main=False, shapes=("square_*",)),
    BenchCandidate("cake_gemm_bn128", "gemm", "hopper", params={"BN": 128}, main=False, shapes=("square_*",)),
    BenchCandidate("cake_gemm_group1", "gemm", "hopper", params={"GROUP": 1}, main=False, shapes=("square_*",)),
    BenchCandidate("cake_gemm_group16", "gemm", "hopper", params={"GROUP": 16}, main=False, shapes=("square_*",)),
    BenchCandidate("cake_gemm_one_consumer", "gemm", "hopper", params={"MEMBERS": 1, "STAGES": 5}, main=False, shapes=("square_*",)),
    BenchCandidate("cake_gemm_sm80", "gemm", "ampere", main=False, shapes=("square_*",)),
    *_kmeans(),
    *_rows("rmsnorm"),
    *_rows("add_rmsnorm"),
    *_softmax(),
    *_silu(),
    *_attention(),
    *_gemm_llm(),
    *_gemm_nn(),
    *_gemm_fp8(),
    *_tiny_gemm(),
)

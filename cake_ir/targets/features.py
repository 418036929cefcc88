"""Names of the hardware features the language asks for, and the probe each one stands for.

The value is the key in ``data/targets.json`` (a boolean measured by assembling a minimal kernel). ``NARROWER`` removes a
feature where hardware or the vendor's own libraries are narrower than the assembler.
"""

from __future__ import annotations

FEATURES: dict[str, str] = {
    "CP_ASYNC": "cp_async",
    "LDMATRIX": "ldmatrix",
    "LDMATRIX_B8": "ldmatrix_b8_m16n16",
    "LDMATRIX_UNPACK": "ldmatrix_unpack_b4_b6",
    "STMATRIX": "stmatrix",
    "STMATRIX_B8": "stmatrix_b8",
    "MOVMATRIX": "movmatrix",
    "MMA_SYNC": "mma_sync",
    "FP8_MMA": "mma_sync_fp8",
    "F8F6F4_MMA": "mma_sync_f6f4",
    "BLOCK_SCALED_MMA": "mma_sync_blockscaled",
    "TMA": "tma",
    "MULTICAST": "tma_multicast",
    "TMA_REDUCE": "tma_reduce",
    "TMA_GATHER4": "tma_gather4_shared_cta",
    "TMA_SCATTER4": "tma_scatter4",
    "TMA_CTA_GROUP": "tma_cta_group",
    "CLUSTER": "clusters",
    "DSMEM": "dsmem",
    "ST_ASYNC": "st_async",
    "MBARRIER": "mbarrier",
    "MBARRIER_TX": "mbarrier_tx",
    "MBARRIER_TRY_WAIT": "mbarrier_try_wait",
    "WGMMA": "wgmma",
    "SETMAXNREG": "setmaxnreg",
    "TCGEN05": "tcgen05",
    "TCGEN05_I8": "tcgen05_i8",
    "TCGEN05_BLOCK_SCALED": "tcgen05_blockscaled",
    "TCGEN05_LD_RED": "tcgen05_ld_red",
    "TCGEN05_SHIFT": "tcgen05_shift",
    "TCGEN05_K96": "k96_blockscaled",
    "TWO_CTA_MMA": "two_cta_mma",
    "TMEM": "tmem",
    "CLC": "cluster_launch_control",
    "PDL": "griddepcontrol",
    "ELECT_SYNC": "elect_sync",
    "FENCE_PROXY_ASYNC": "fence_proxy_async",
    "REDUX_I32": "redux_i32",
    "REDUX_F32": "redux_f32",
    "F32X2": "f32x2_fma",
    "MAX3_F32": "max3_f32",
    "BF16X2_ADD": "bf16x2_add_native",
    "FP8_CVT": "cvt_fp8",
    "FP6_CVT": "cvt_fp6",
    "FP4_CVT": "cvt_fp4",
    "UE8M0_CVT": "cvt_ue8m0",
    "STOCHASTIC_CVT": "cvt_stochastic_rs",
    "LDST_256": "ld_st_256bit",
    "RED_VECTOR": "red_vector_v4f32",
}

_NO_CLUSTER = "the vendor's libraries fix the cluster to 1x1x1 on these boards, although the assembler takes the instruction"

NARROWER: dict[str, dict[str, str]] = {
    name: {
        "MULTICAST": "these boards have no multicast, although the assembler takes the instruction",
        "CLUSTER": _NO_CLUSTER,
        "DSMEM": _NO_CLUSTER,
        "ST_ASYNC": _NO_CLUSTER,
    }
    for name in ("sm_120a", "sm_121a")
}

"""sm_100a: Blackwell data centre (B200): `tcgen05` with tensor memory, two-CTA MMA, cluster launch control."""

from __future__ import annotations

from cake_ir.targets.architecture import Target, feature_set

TARGET = Target(
    name="sm_100a",
    family="Blackwell data centre",
    compute_capability=(10, 0),
    smem_per_sm=233472,
    smem_optin=232448,
    cluster_max=8,
    cluster_max_nonportable=16,
    tmem_columns=512,
    tmem_lanes=128,
    vector_bytes=32,
    features=feature_set(
        "CP_ASYNC LDMATRIX LDMATRIX_B8 LDMATRIX_UNPACK STMATRIX STMATRIX_B8 MOVMATRIX MMA_SYNC FP8_MMA TMA MULTICAST "
        "TMA_REDUCE TMA_GATHER4 TMA_SCATTER4 TMA_CTA_GROUP CLUSTER DSMEM ST_ASYNC MBARRIER MBARRIER_TX MBARRIER_TRY_WAIT "
        "SETMAXNREG TCGEN05 TCGEN05_I8 TCGEN05_BLOCK_SCALED TCGEN05_SHIFT TWO_CTA_MMA TMEM CLC PDL ELECT_SYNC "
        "FENCE_PROXY_ASYNC REDUX_I32 REDUX_F32 F32X2 MAX3_F32 BF16X2_ADD FP8_CVT FP6_CVT FP4_CVT UE8M0_CVT STOCHASTIC_CVT "
        "LDST_256 RED_VECTOR"
    ),
)

"""sm_90a: Hopper (H100, H200): TMA, clusters and multicast, `wgmma`, register reallocation."""

from __future__ import annotations

from cake_ir.targets.architecture import Target, feature_set

TARGET = Target(
    name="sm_90a",
    family="Hopper",
    compute_capability=(9, 0),
    smem_per_sm=233472,
    smem_optin=232448,
    cluster_max=8,
    cluster_max_nonportable=16,
    features=feature_set(
        "CP_ASYNC LDMATRIX STMATRIX MOVMATRIX MMA_SYNC FP8_MMA TMA MULTICAST TMA_REDUCE CLUSTER DSMEM ST_ASYNC MBARRIER "
        "MBARRIER_TX MBARRIER_TRY_WAIT WGMMA SETMAXNREG PDL ELECT_SYNC FENCE_PROXY_ASYNC REDUX_I32 BF16X2_ADD FP8_CVT "
        "RED_VECTOR"
    ),
)

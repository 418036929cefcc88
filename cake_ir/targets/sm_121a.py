"""sm_121a: DGX Spark (GB10): the limits and features of sm_120a."""

from __future__ import annotations

from cake_ir.targets.architecture import Target, feature_set
from cake_ir.targets.features import NARROWER

TARGET = Target(
    name="sm_121a",
    family="Blackwell consumer",
    compute_capability=(12, 1),
    smem_per_sm=102400,
    smem_optin=101376,
    threads_per_sm=1536,
    warps_per_sm=48,
    blocks_per_sm=24,
    named_barriers_per_sm=24,
    vector_bytes=32,
    features=feature_set(
        "CP_ASYNC LDMATRIX LDMATRIX_B8 LDMATRIX_UNPACK STMATRIX STMATRIX_B8 MOVMATRIX MMA_SYNC FP8_MMA F8F6F4_MMA "
        "BLOCK_SCALED_MMA TMA TMA_REDUCE TMA_GATHER4 MBARRIER MBARRIER_TX MBARRIER_TRY_WAIT SETMAXNREG CLC PDL ELECT_SYNC "
        "FENCE_PROXY_ASYNC REDUX_I32 F32X2 MAX3_F32 BF16X2_ADD FP8_CVT FP6_CVT FP4_CVT UE8M0_CVT LDST_256 RED_VECTOR"
    ),
    narrower=NARROWER["sm_121a"],
)

"""sm_89: Ada (L40S, RTX 4090): Ampere's instruction set with fp8 `mma.sync`, and 99 KiB of shared memory."""

from __future__ import annotations

from cake_ir.targets.architecture import Target, feature_set

TARGET = Target(
    name="sm_89",
    family="Ada",
    compute_capability=(8, 9),
    smem_per_sm=102400,
    smem_optin=101376,
    threads_per_sm=1536,
    warps_per_sm=48,
    blocks_per_sm=24,
    named_barriers_per_sm=24,
    features=feature_set("CP_ASYNC LDMATRIX MOVMATRIX MMA_SYNC FP8_MMA MBARRIER REDUX_I32 FP8_CVT"),
)

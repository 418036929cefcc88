"""sm_80: Ampere data centre (A100): `cp.async` rings, `mma.sync` on fragments, no TMA."""

from __future__ import annotations

from cake_ir.targets.architecture import Target, feature_set

TARGET = Target(
    name="sm_80",
    family="Ampere",
    compute_capability=(8, 0),
    smem_per_sm=167936,
    smem_optin=166912,
    features=feature_set("CP_ASYNC LDMATRIX MOVMATRIX MMA_SYNC MBARRIER REDUX_I32"),
)

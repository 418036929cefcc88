"""Deliberate faults of the six examples, one edit each, with the code and the line (by its text) where they have to be reported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Seed:
    """`old` -> `new` in `example` is rejected as `code` at the line that contains `at` after the edit."""

    example: str
    name: str
    old: str
    new: str
    code: str
    at: str

    def __str__(self) -> str:
        return f"{self.example}-{self.name}"


STORE_WAIT = "                lm.store_wait(pending=1)                        # slot c was read by the store of two slices ago\n"

SEEDS = (
    Seed("gemm_ws", "releases the slot in use", "lm.arrive(ab_empty, stage=s.prev())", "lm.arrive(ab_empty, stage=s)", "S005", "lm.arrive(ab_empty, stage=s)"),
    Seed("gemm_ws", "never releases the last slot", "            lm.arrive(ab_empty, stage=lm.at(ab))\n", "", "S008", "            lm.mma_wait(pending=0)"),
    Seed("gemm_ws", "frees slots for one CTA only", ', scope="cluster"', "", "S012", "ab_empty = lm.barrier"),
    Seed("gemm_ws", "drops mma_wait", "                lm.mma_wait(pending=1)                          # the previous k tile has been read\n", "", "S005",
         "lm.arrive(ab_empty, stage=s.prev())"),
    Seed("gemm_ws", "drops the fence", "                lm.fence_proxy()                                # generic writes -> async-proxy read\n", "", "S006", "half.store"),
    Seed("gemm_ws", "drops store_wait", STORE_WAIT, "", "S011", "half.store"),
    Seed("fmha_fwd", "never releases V", "                lm.arrive(v_empty, stage=sv)\n", "", "S008", "O done: pa and V slot are free"),
    Seed("fmha_fwd", "keeps the turn", "                lm.arrive(turn)                                 # the other warpgroup may issue while we do softmax\n", "", "S015",
         "lm.mma(o, pa, smem_v[sv].T)"),
    Seed("fmha_fwd", "does not wait for V", "                lm.wait(v_full, stage=sv)\n", "", "S004", "lm.mma(o, pa, smem_v[sv].T)"),
    Seed("fmha_fwd", "drops store_wait", "            lm.store_wait(pending=0)\n            lm.sync(own)\n", "            lm.sync(own)\n", "S011", "lm.arrive(q_empty, stage=sq)"),
    Seed("kmeans_assign", "releases before mma_wait", "                lm.mma_wait(pending=0)\n                lm.arrive(c_empty, stage=s)\n",
         "                lm.arrive(c_empty, stage=s)\n                lm.mma_wait(pending=0)\n", "S005", "lm.arrive(c_empty, stage=s)"),
    Seed("kda_inter", "drops store_wait", "                lm.store_wait(pending=1)\n", "", "S011", "smem_o[so].cols(v0, 64).T.store"),
    Seed("kda_inter", "stores whole chunks", "rows=rows)", "rows=C)", "S013", "smem_o[so].tma_store"),
    Seed("gemm_sm80", "waits for too little", "lm.cp_wait(pending=STAGES - 2)", "lm.cp_wait(pending=STAGES - 1)", "S004", "lm.cp_wait(pending=STAGES - 1)"),
    Seed("gemm_sm80", "drops the sync", "                lm.sync(cta)                                    # ... everyone's; and tile k-1 is no longer read\n", "", "S004", "lm.cp_wait(pending=STAGES - 2)"),
)  # fmt: skip

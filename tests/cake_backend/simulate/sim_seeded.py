"""Deliberate faults, one edit each, in the example schedules."""

from __future__ import annotations

from dataclasses import dataclass

from sim_cases import FMHA_CAUSAL, GEMM_SM80, GEMM_WS, KDA, KMEANS, Case


@dataclass(frozen=True)
class Seeded:
    """A wrong variant of a case: what was done, and the edits that do it."""

    case: Case
    what: str
    edits: tuple[tuple[str, str], ...]


def drop(line: str, indent: int) -> tuple[str, str]:
    """Replace a whole line by `pass` at the same indentation."""
    pad = " " * indent
    return f"\n{pad}{line}", f"\n{pad}pass"


SEEDED = (
    Seeded(GEMM_WS, "release s instead of s.prev()", (("stage=s.prev())", "stage=s)"),)),
    Seeded(GEMM_WS, "drop the release after the loop", (drop("lm.arrive(ab_empty, stage=lm.at(ab))", 12),)),
    Seeded(GEMM_WS, "ab_empty without scope=cluster", (('primed=True, scope="cluster")', "primed=True)"),)),
    Seeded(GEMM_WS, "drop mma_wait(pending=1)", (drop("lm.mma_wait(pending=1)", 16),)),
    Seeded(GEMM_WS, "drop fence_proxy", (drop("lm.fence_proxy()", 16),)),
    Seeded(GEMM_WS, "drop store_wait(pending=1)", (drop("lm.store_wait(pending=1)", 16),)),
    Seeded(FMHA_CAUSAL, "drop arrive(v_empty) in the loop", (drop("lm.arrive(v_empty, stage=sv)", 16),)),
    Seeded(FMHA_CAUSAL, "drop arrive(turn)", (drop("lm.arrive(turn)", 16),)),
    Seeded(FMHA_CAUSAL, "drop wait(v_full) in the loop", (drop("lm.wait(v_full, stage=sv)", 16),)),
    Seeded(FMHA_CAUSAL, "drop store_wait before q_empty", (drop("lm.store_wait(pending=0)", 12),)),
    Seeded(KMEANS, "release c_empty before mma_wait",
           (("                lm.mma_wait(pending=0)\n                lm.arrive(c_empty, stage=s)\n",
             "                lm.arrive(c_empty, stage=s)\n                lm.mma_wait(pending=0)\n"),)),
    Seeded(KDA, "drop store_wait(pending=1)", (drop("lm.store_wait(pending=1)", 16),)),
    Seeded(KDA, "store rows=C", ((", rows=rows)", ", rows=C)"),)),
    Seeded(GEMM_SM80, "cp_wait(STAGES-1)", (("lm.cp_wait(pending=STAGES - 2)", "lm.cp_wait(pending=STAGES - 1)"),)),
    Seeded(GEMM_SM80, "drop the sync of the k loop",
           (("                lm.sync(cta)                                    # ... everyone's", "                pass                                            # ... everyone's"),)),
)  # fmt: skip

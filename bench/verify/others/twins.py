"""The schedules whose Gluon ports are in `gluon_kernels`, with the same mutations as edits of their text.

A mutation is a name and, a side, what is replaced; None where the language has no way to make the mistake: phases, byte counts, arrival
counts and barrier inits are derived from declarations, so there is no text to get wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.verify.cases import CASES
from bench.verify.cases.case import F16, F32, Case, Filled, empty, f64, normal

RING_GEMM = '''
@cake.schedule(target="sm_90a")
def ring_gemm(lm, A: LM.tma2d[LM.f16, "M", "K"], B: LM.tma2d[LM.f16, "N", "K"], C: LM.gmem2d[LM.f16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, STAGES=3):
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    pool = lm.smem(2 * STAGES * 64 * 64 * 2)
    a_ring = pool.view(offset=0, shape=(64, 64), dtype=lm.f16, stage=STAGES, swizzle="128b")
    b_ring = pool.view(offset=STAGES * 8192, shape=(64, 64), dtype=lm.f16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 64)))
    count = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(count):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a_ring.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
                b_ring.tma_load(B, coords=(k * 64, t.n * 64), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(count):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, a_ring[s], b_ring[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(C, lm.cast(acc, lm.f16), coords=(t.n * 64, t.m * 64), clip=True)
'''

STAGED_DOUBLE = '''
@cake.schedule(target="sm_90a")
def staged_double(lm, X: LM.tma2d[LM.f16, "M", "N"], Y: LM.tma2d[LM.f16, "M", "N"], M: LM.i32, N: LM.i32, *, STAGES=3):
    lm.launch(grid="tiles")
    lm.assume(N % 8 == 0)
    pool = lm.smem(STAGES * 64 * 64 * 2)
    ring = pool.view(offset=0, shape=(64, 64), dtype=lm.f16, stage=STAGES, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    slots = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=slots, prod=[work], cons=[work], arrive="tx")
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64),), names=("m",))
    count = lm.cdiv(N, 64)
    with work:
        for t in lm.tiles(sched):
            for i in lm.static_range(STAGES - 1):
                s = lm.step(slots)
                if i < count:
                    ring.tma_load(X, coords=(i * 64, t.m * 64), stage=s, barrier=full)
            for i in lm.range(count):
                w = lm.step(slots)
                r = w.prev(STAGES - 1)
                lm.wait(full, stage=r)
                x = ring[r].load(form="vec")
                ring[r].store(x + x)
                lm.fence_proxy()
                lm.sync(cta)
                ring[r].tma_store(Y, coords=(i * 64, t.m * 64))
                if i + STAGES - 1 < count:
                    lm.store_wait(pending=1)
                    ring.tma_load(X, coords=((i + STAGES - 1) * 64, t.m * 64), stage=w, barrier=full)
        lm.store_wait(pending=0)
'''

Edit = tuple[str, str] | None
_LOADS = """                a_ring.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
                b_ring.tma_load(B, coords=(k * 64, t.n * 64), stage=s, barrier=full)
"""
_WAIT = "                lm.cp_wait(pending=STAGES - 2)\n"
_READS = _WAIT + """                lm.sync(cta)
                w = lm.step(ring)
                r = w.prev(STAGES - 1)
                for kk in lm.static_range(BK // 16):
                    a = sa[r].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sb[r].rows(16 * kk, 16).T.ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
"""
MUTATIONS: Mapping[str, Mapping[str, Edit]] = {
    "ring_gemm": {
        "no wait for full": ("lm.wait(full, stage=s)", "pass"),
        "no wait for empty": ("lm.wait(empty, stage=s)", "pass"),
        "no release": ("lm.arrive(empty, stage=s)", "pass"),
        "waits for the other parity": ("lm.wait(full, stage=s)", "lm.wait(full, stage=s.prev(STAGES))"),
        "not primed": (", primed=True", ""),
        "reads the next stage": ("a_ring[s], b_ring[s]", "a_ring[s.prev(STAGES - 1)], b_ring[s.prev(STAGES - 1)]"),
        "loads to the next stage": (_LOADS, _LOADS.replace("stage=s,", "stage=s.prev(STAGES - 1),")),
        "releases before the product ends": (
            "                lm.mma_wait(pending=0)\n                lm.arrive(empty, stage=s)\n",
            "                lm.arrive(empty, stage=s)\n                lm.mma_wait(pending=0)\n",
        ),
        "waits for one product less": ("lm.mma_wait(pending=0)", "lm.mma_wait(pending=1)"),
        "releases the next stage": ("lm.arrive(empty, stage=s)", "lm.arrive(empty, stage=s.prev(STAGES - 1))"),
        "releases twice": ("                lm.arrive(empty, stage=s)\n", "                lm.arrive(empty, stage=s)\n                lm.arrive(empty, stage=s)\n"),
        "one load more": ("            for k in lm.range(count):\n                s = lm.step(ring)\n                lm.wait(empty", "            for k in lm.range(count + 1):\n                s = lm.step(ring)\n                lm.wait(empty"),
        "no copy of B": ("                b_ring.tma_load(B, coords=(k * 64, t.n * 64), stage=s, barrier=full)\n", ""),
        "empty counts two": None,
        "expects more bytes": None,
        "expects fewer bytes": None,
        "no fence after init": None,
    },
    "staged_double": {
        "no wait for full": ("lm.wait(full, stage=r)", "pass"),
        "no fence": ("                lm.fence_proxy()\n", ""),
        "stores the next stage": ("ring[r].tma_store", "ring[r.prev(STAGES - 1)].tma_store"),
        "waits for one store less": ("lm.store_wait(pending=1)", "lm.store_wait(pending=2)"),
        "no wait for stores": ("lm.store_wait(pending=1)", "pass"),
        "leaves with stores in flight": ("        lm.store_wait(pending=0)\n", ""),
    },
    "copy_ring": {
        "waits for one group less": ("lm.cp_wait(pending=STAGES - 2)", "lm.cp_wait(pending=STAGES - 1)"),
        "no wait": ("                lm.cp_wait(pending=STAGES - 2)\n", ""),
        "waits after reading": (_READS, _READS.replace(_WAIT, "") + _WAIT),
        "fills the stage being read": (
            "stage=w)\n                    sb.cp_async(B, coords=(t.n * BN, (k + STAGES - 1) * BK), stage=w)",
            "stage=r)\n                    sb.cp_async(B, coords=(t.n * BN, (k + STAGES - 1) * BK), stage=r)",
        ),
        "no commit": (
            "stage=w)\n                lm.cp_commit()\n", "stage=w)\n",
        ),
    },
}  # fmt: skip


def _product(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    a, b = normal(rng, x["M"], x["K"], dtype=F16), normal(rng, x["N"], x["K"], dtype=F16)
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"], dtype=F16)}, dict(x), {"C": f64(a) @ f64(b).T})


def _doubled(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    a = normal(rng, x["M"], x["N"], dtype=F16)
    return Filled({"X": a, "Y": empty(x["M"], x["N"], dtype=F16)}, dict(x), {"Y": 2.0 * f64(a)})


def _plain_product(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    a, b = normal(rng, x["M"], x["K"], dtype=F16), normal(rng, x["K"], x["N"], dtype=F16)
    return Filled({"A": a, "B": b, "C": empty(x["M"], x["N"], dtype=F32)}, dict(x), {"C": f64(a) @ f64(b)})


class Twin(Case):
    """A case whose text is here instead of in a file."""

    def text(self) -> str:
        return TEXTS[self.name]


TEXTS = {
    "ring_gemm": RING_GEMM, "staged_double": STAGED_DOUBLE,
    "copy_ring": CASES["cp_async_single_sync"].text().replace('target=("sm_80", "sm_89", "sm_90a", "sm_120a")', 'target="sm_90a"'),
}  # fmt: skip
TWINS: dict[str, Case] = {
    "ring_gemm": Twin("ring_gemm", "ring_gemm.py", ({"M": 128, "N": 128, "K": 512},), _product),
    "staged_double": Twin("staged_double", "staged_double.py", ({"M": 128, "N": 512},), _doubled),
    "copy_ring": Twin("copy_ring", "copy_ring.py", ({"M": 128, "N": 128, "K": 512},), _plain_product),
}


def mutated(kernel: str, mutation: str) -> str | None:
    """The schedule's text with a mutation (the empty name: none); None where it cannot be written."""
    text = TEXTS[kernel]
    if not mutation:
        return text
    edit = MUTATIONS[kernel][mutation]
    if edit is None:
        return None
    assert text.count(edit[0]) == 1, (kernel, mutation, text.count(edit[0]))
    return text.replace(*edit)

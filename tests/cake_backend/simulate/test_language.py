"""What the six examples do not use: other engines, barriers and schedulers, each against NumPy under every adversary."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sim_schedules import caught, close, everywhere, nan, normal, program

from cake_backend.simulate import adversaries, simulate

TCGEN05 = """
@cake.schedule(target="sm_100a")
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32], M: LM.i32, N: LM.i32, K: LM.i32, *, STAGES=3):
    lm.launch(grid="persistent")
    a_bytes, b_bytes = STAGES * 128 * 64 * 2, STAGES * 64 * 64 * 2
    pool = lm.smem(a_bytes + b_bytes)
    smem_a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    tmem = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    load, mma, epi = lm.role(warps=[0]), lm.role(warps=[1]), lm.role(warps=range(4, 8))
    ab, accp = lm.pipeline(stages=STAGES), lm.pipeline(stages=2)
    ab_full = lm.barrier(pipeline=ab, prod=[load], cons=[mma], arrive="tx")
    ab_empty = lm.barrier(pipeline=ab, prod=[mma], cons=[load], arrive="mma", primed=True)
    acc_full = lm.barrier(pipeline=accp, prod=[mma], cons=[epi], arrive="mma")
    acc_empty = lm.barrier(pipeline=accp, prod=[epi], cons=[mma], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 64)))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(ab_empty, stage=s)
                smem_a.tma_load(A, coords=(k * 64, t.m * 128), stage=s, barrier=ab_full)
                smem_b.tma_load(B, coords=(k * 64, t.n * 64), stage=s, barrier=ab_full)
    with mma:
        for t in lm.tiles(sched):
            d = lm.step(accp)
            lm.wait(acc_empty, stage=d)
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(ab_full, stage=s)
                lm.mma(tmem.cols(64 * d.index, 64), smem_a[s], smem_b[s], init=(k == 0))
                lm.commit(ab_empty, stage=s)
            lm.commit(acc_full, stage=d)
    with epi:
        for t in lm.tiles(sched):
            d = lm.step(accp)
            lm.wait(acc_full, stage=d)
            c = lm.tmem_load(tmem.cols(64 * d.index, 64))
            lm.tmem_wait("ld")
            lm.arrive(acc_empty, stage=d)
            lm.store(C, c, coords=(t.n * 64, t.m * 128), clip=True)
"""


def test_tensor_memory_gemm_agrees_with_numpy() -> None:
    a, b = normal(1, 200, 152), normal(2, 100, 152)
    r = everywhere(program(TCGEN05), {"A": a, "B": b, "C": nan(200, 100, dtype=np.float32)}, {"M": 200, "N": 100, "K": 152}, ctas=2)
    assert close(r.outputs["C"], a.astype(float) @ b.astype(float).T, 1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('            lm.tmem_wait("ld")\n', "            pass\n"),
        (
            '            lm.tmem_wait("ld")\n            lm.arrive(acc_empty, stage=d)\n',
            '            lm.arrive(acc_empty, stage=d)\n            lm.tmem_wait("ld")\n',
        ),
        ("            lm.wait(acc_empty, stage=d)\n", "            pass\n"),
        ("                lm.wait(ab_full, stage=s)\n", "                pass\n"),
        ("            lm.wait(acc_full, stage=d)\n", "            pass\n"),
    ],
)
def test_a_missing_wait_of_the_tensor_memory_gemm_shows(old: str, new: str) -> None:
    assert TCGEN05.count(old) == 1
    p = program(TCGEN05.replace(old, new))
    a, b = normal(1, 300, 152), normal(2, 130, 152)
    tensors, scalars = {"A": a, "B": b, "C": nan(300, 130, dtype=np.float32)}, {"M": 300, "N": 130, "K": 152}
    want = a.astype(float) @ b.astype(float).T
    runs = [simulate(p, tensors, scalars, ctas=1, policy=policy) for policy in adversaries(p)]
    assert any(not r.ok or not close(r.outputs["C"], want, 1e-5) for r in runs)


MULTICAST = """
@cake.schedule(target="sm_90a")
def gemm(lm, A: LM.tma2d, B: LM.tma2d, C: LM.gmem2d[LM.f32], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="persistent", cluster=(2, 2))
    pool = lm.smem(2 * 64 * 64 * 2 + 2 * 32 * 64 * 2)
    smem_a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_b = pool.view(offset=2 * 64 * 64 * 2, shape=(32, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ab = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster")
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 32)), cluster=(2, 2))
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 64)):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full, multicast="n")
                smem_b.tma_load(B, coords=(k * 64, t.n * 32), stage=s, barrier=full, multicast="m")
    with math:
        acc = lm.frag(shape=(64, 32), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 64)):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s], smem_b[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(C, acc, coords=(t.n * 32, t.m * 64), clip=True)
"""


def test_multicast_along_both_axes_of_a_2x2_cluster_agrees_with_numpy() -> None:
    a, b = normal(1, 300, 192), normal(2, 100, 192)
    p = program(MULTICAST)
    r = everywhere(p, {"A": a, "B": b, "C": nan(300, 100, dtype=np.float32)}, {"M": 300, "N": 100, "K": 192}, ctas=4)
    assert close(r.outputs["C"], a.astype(float) @ b.astype(float).T, 1e-5)


def test_an_empty_barrier_of_one_cta_under_multicast_shows() -> None:
    a, b = normal(1, 300, 192), normal(2, 100, 192)
    p = program(MULTICAST.replace(', scope="cluster")', ")"))
    assert caught(p, {"A": a, "B": b, "C": nan(300, 100, dtype=np.float32)}, {"M": 300, "N": 100, "K": 192}, ctas=4) & {
        "X004",
        "X002",
        "X001",
    }


TWO_ACCUMULATORS = """
@cake.schedule(target="sm_90a")
def scores(lm, X: LM.tma2d, MU: LM.tma2d, BEST: LM.gmem1d[LM.f32], NK: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(64 * 64 * 2 + 4 * 32 * 64 * 2)
    smem_x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    smem_c = pool.view(offset=64 * 64 * 2, shape=(32, 64), dtype=lm.bf16, stage=4, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    xr, cr, ar = lm.pipeline(stages=1), lm.pipeline(stages=4), lm.pipeline(stages=2)
    x_full = lm.barrier(pipeline=xr, prod=[load], cons=[math], arrive="tx")
    c_full = lm.barrier(pipeline=cr, prod=[load], cons=[math], arrive="tx")
    c_empty = lm.barrier(pipeline=cr, prod=[math], cons=[load], arrive="member", primed=True)
    n = lm.cdiv(NK, 32)
    with load:
        sx = lm.step(xr)
        smem_x.tma_load(X, coords=(0, 0), stage=sx, barrier=x_full)
        for k in lm.range(n):
            s = lm.step(cr)
            lm.wait(c_empty, stage=s)
            smem_c.tma_load(MU, coords=(0, k * 32), stage=s, barrier=c_full)
    with math:
        acc = lm.frag(shape=(64, 32), dtype=lm.f32, form="acc", stage=2)
        best = lm.rowvec(acc, init=-lm.inf)
        sx = lm.step(xr)
        lm.wait(x_full, stage=sx)
        s = lm.step(cr)
        a = lm.step(ar)
        lm.wait(c_full, stage=s)
        lm.mma(acc[a], smem_x, smem_c[s], init=True)
        for k in lm.range(1, n):
            s = lm.step(cr)
            a = lm.step(ar)
            lm.wait(c_full, stage=s)
            lm.mma(acc[a], smem_x, smem_c[s], init=True)
            lm.mma_wait(pending=1)
            lm.arrive(c_empty, stage=s.prev())
            best = lm.max(best, lm.reduce(acc[a.prev()], "max", axis=1))
        lm.mma_wait(pending=0)
        lm.arrive(c_empty, stage=s)
        best = lm.max(best, lm.reduce(acc[a], "max", axis=1))
        lm.store(BEST, best, coords=(0,))
"""


def test_an_array_of_accumulators_on_a_ring_agrees_with_numpy() -> None:
    x, mu = normal(1, 64, 64), normal(2, 224, 64)
    r = everywhere(program(TWO_ACCUMULATORS), {"X": x, "MU": mu, "BEST": nan(64, dtype=np.float32)}, {"NK": 224}, ctas=1)
    assert close(r.outputs["BEST"], (x.astype(float) @ mu.astype(float).T).max(1), 1e-5)


def test_reading_the_accumulator_in_flight_instead_of_the_one_before_shows() -> None:
    x, mu = normal(1, 64, 64), normal(2, 224, 64)
    p = program(TWO_ACCUMULATORS.replace("acc[a.prev()]", "acc[a]"))
    assert "X005" in caught(p, {"X": x, "MU": mu, "BEST": nan(64, dtype=np.float32)}, {"NK": 224}, ctas=1)


GROUPED = """
@cake.schedule(target="sm_90a")
def grouped(lm, A: LM.tma2d, W: LM.tma3d, C: LM.gmem2d[LM.f32], OFFS: LM.gmem1d[LM.i32], N: LM.i32, K: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(2 * 64 * 64 * 2 + 2 * 32 * 64 * 2)
    smem_a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_b = pool.view(offset=2 * 64 * 64 * 2, shape=(32, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ab = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="thread", primed=True)
    sched = lm.scheduler(kind="grouped", tiles=(lm.cdiv(N, 32),), offsets=OFFS, block=64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 64)):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=(k * 64, t.row0), stage=s, barrier=full)
                smem_b.tma_load(W, coords=(k * 64, t.n * 32, t.group), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, 32), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 64)):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s], smem_b[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(C, acc, coords=(t.n * 32, t.row0), mask=lm.in_bounds(acc, rows=t.rows, cols=N - t.n * 32))
"""


def test_groups_of_uneven_and_empty_size_agree_with_numpy() -> None:
    offsets = np.array([0, 70, 70, 83, 200], np.int32)
    a, w = normal(1, 200, 128), normal(2, 4, 70, 128)
    r = everywhere(program(GROUPED), {"A": a, "W": w, "C": nan(200, 70, dtype=np.float32), "OFFS": offsets}, {"N": 70, "K": 128}, ctas=2)
    want = np.concatenate([a[lo:hi].astype(float) @ w[g].astype(float).T for g, (lo, hi) in enumerate(pairwise(offsets))])
    assert close(r.outputs["C"], want, 1e-5)

"""Schedules of the safety cases: hand-overs between roles, the copy engine, clusters."""

from __future__ import annotations

from reported import edit

EPILOGUE = '''
@cake.schedule(target="sm_90a")
def f(lm, S: LM.gmem2d[LM.f32], O: LM.tma2d[LM.f32]):
    pool = lm.smem(32768)
    o = pool.view(offset=0, shape=(64, 128), dtype=lm.f32, swizzle="128b")
    epi = lm.role(warps=range(0, 4))
    group = lm.named_barrier(epi)
    with epi:
        o.store(lm.load(S, coords=(0, 0), shape=(64, 128), form="acc"))
        lm.fence_proxy()
        lm.sync(group)
        o.tma_store(O, coords=(0, 0))
        lm.store_wait(pending=0)
'''
"""A state tile goes from registers through shared memory to a TMA store."""

TWO_BARRIERS = '''
@cake.schedule(target="sm_90a")
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32], K: LM.i32):
    lm.assume(K > 0)
    pool = lm.smem(49152)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    ring = lm.pipeline(stages=2)
    full_a = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    full_b = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    kt = lm.cdiv(K, 64)
    with load:
        for k in lm.range(kt):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.tma_load(A, coords=(k * 64, 0), stage=s, barrier=full_a)
            b.tma_load(B, coords=(k * 64, 0), stage=s, barrier=full_b)
    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for k in lm.range(kt):
            s = lm.step(ring)
            lm.wait(full_a, stage=s)
            lm.wait(full_b, stage=s)
            lm.mma(acc, a[s], b[s], init=(k == 0))
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
        lm.store(C, acc, coords=(0, 0))
'''
"""A product whose operands complete on a barrier each."""

A_AFTER = edit(TWO_BARRIERS, ("            lm.wait(full_a, stage=s)\n", ""), ("            lm.mma_wait(pending=0)\n", "            lm.wait(full_a, stage=s)\n            lm.mma_wait(pending=0)\n"))
B_NEVER = edit(TWO_BARRIERS, ("            lm.wait(full_b, stage=s)\n", ""))
ONE_BARRIER = edit(
    TWO_BARRIERS,
    ("    full_b = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive=\"tx\")\n", ""),
    ("barrier=full_b", "barrier=full_a"),
    ("            lm.wait(full_b, stage=s)\n", ""),
)  # fmt: skip

RELEASE_TOO_EARLY = edit(
    ONE_BARRIER,
    ("            lm.mma_wait(pending=0)\n            lm.arrive(empty, stage=s)\n", "            lm.arrive(empty, stage=s)\n        lm.mma_wait(pending=0)\n"),
)  # fmt: skip
OVERLAPPED = edit(
    ONE_BARRIER,
    ("            lm.mma_wait(pending=0)\n            lm.arrive(empty, stage=s)\n", "            lm.mma_wait(pending=1)\n            if k > 0:\n                lm.arrive(empty, stage=s.prev())\n        lm.mma_wait(pending=0)\n        lm.arrive(empty, stage=lm.at(ring))\n"),
)  # fmt: skip

STAGING = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.tma2d[LM.f32], R: LM.i32):
    pool = lm.smem(16384)
    tile = pool.view(offset=0, shape=(64, 64), dtype=lm.f32, swizzle="128b")
    epi = lm.role(warps=range(0, 4))
    group = lm.named_barrier(epi)
    with epi:
        for j in lm.range(R):
            tile.store(lm.load(X, coords=(0, 64 * j), shape=(64, 64), form="acc"))
            lm.fence_proxy()
            lm.sync(group)
            tile.tma_store(Y, coords=(0, 64 * j))
            lm.store_wait(pending=0)
            lm.sync(group)
'''
"""Tiles leave through one staging tile, which is read out before it is written again."""

WAIT_OUTSIDE = edit(STAGING, ("            lm.store_wait(pending=0)\n            lm.sync(group)\n", "        lm.store_wait(pending=0)\n"))

GROUPED = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.tma2d[LM.bf16, "T", "D"], Y: LM.tma2d[LM.bf16, "T", "D"], OFFS: LM.gmem1d[LM.i32, "G1"].const, T: LM.i32, G: LM.i32, G1: LM.i32, D: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(G > 0 and G1 == G + 1)
    lm.assume_values(OFFS, 0, T + 1, sorted=True)
    pool = lm.smem(32768)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    y = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grouped", tiles=(lm.cdiv(D, 64),), offsets=OFFS, block=64)
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            x.tma_load(X, coords=(t.n * 64, t.row0), stage=s, barrier=full)
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            v = x[s].load(form="acc")
            lm.arrive(empty, stage=s)
            lm.store_wait(pending=0)
            lm.sync(own)
            y.store(v)
            lm.fence_proxy()
            lm.sync(own)
            y.tma_store(Y, coords=(t.n * 64, t.row0), rows=lm.min(64, t.rows))
        lm.store_wait(pending=0)
'''
"""Groups of rows behind one descriptor: the group moves the coordinates, and a row count cuts the store."""

REWRITTEN = edit(GROUPED, ("            s = lm.step(ring)\n            lm.wait(empty", "            lm.modify_desc(X, t.row0)\n            s = lm.step(ring)\n            lm.wait(empty"))

CLUSTER = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], M: LM.i32):
    lm.launch(grid="persistent", cluster=(2, 1))
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), 1))
    with epi:
        for t in lm.tiles(sched):
            lm.store(Y, lm.load(X, coords=(0, t.m * 64), shape=(64, 64), clip=True), coords=(0, t.m * 64), clip=True)
        lm.cluster_sync()
    with load:
        lm.cluster_sync()
'''
"""Every warp of both CTAs comes to the cluster barrier once."""

SUBSET = edit(CLUSTER, ("    with load:\n        lm.cluster_sync()\n", "    with load:\n        lm.store(Y, lm.load(X, coords=(64, 0), shape=(1, 64)), coords=(64, 0))\n"))

MIXED_WAITS = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.tma2d[LM.f32], Y: LM.gmem2d[LM.f32], M: LM.i32):
    lm.launch(grid="tiles", cluster=(2, 1))
    pool = lm.smem(16384)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.f32)
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[epi], arrive="tx")
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), 1))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            x.tma_load(X, coords=(0, t.m * 64), stage=s, barrier=full)
        lm.cluster_sync()
    with epi:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.store(Y, x.load(form="vec"), coords=(0, t.m * 64), clip=True)
        lm.cluster_sync()
'''
"""One CTA waits on an mbarrier, then all meet at the cluster barrier."""

CROSSED = edit(
    MIXED_WAITS,
    ("    with load:\n        for t in lm.tiles(sched):", "    with load:\n        lm.cluster_sync()\n        for t in lm.tiles(sched):"),
    ("barrier=full)\n        lm.cluster_sync()\n", "barrier=full)\n"),
)  # fmt: skip

STRADDLE = '''
@cake.schedule(target="sm_90a")
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma3d[LM.bf16], C: LM.gmem2d[LM.f32], K: LM.i32, *, PER_GROUP=130):
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0)
    pool = lm.smem(49152)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster")
    sched = lm.scheduler(kind="static", tiles=(4 * PER_GROUP, 1))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
                b.tma_load(B, coords=(k * 64, 0, t.m // PER_GROUP), stage=s, barrier=full, multicast="m")
    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, a[s], b[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(C, acc, coords=(t.n * 128, t.m * 64))
'''
"""Row tiles of four problems in a row; a pair of CTAs shares the weights of its problem by multicast."""

RANK_ONLY = edit(STRADDLE, ("                b.tma_load(B,", "                if lm.cta_rank('m') == 0:\n                    b.tma_load(B,"))

WORK_QUEUE = '''
@cake.schedule(target="sm_100a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], M: LM.i32):
    lm.launch(grid="persistent", cluster=(2, 1))
    work = lm.role(warps=range(0, 4))
    ask = lm.role(warps=[4])
    sched = lm.scheduler(kind="clc", tiles=(lm.cdiv(M, 64), 1), fetch=ask)
    with ask:
        for t in lm.tiles(sched):
            pass
    with work:
        for t in lm.tiles(sched):
            lm.store(Y, lm.load(X, coords=(0, t.m * 64), shape=(64, 64), clip=True), coords=(0, t.m * 64), clip=True)
'''
"""Tiles from the hardware's queue, for a pair of CTAs."""

ASKED_BY_HAND = edit(WORK_QUEUE, ("            pass\n", "            if lm.cta_rank('m') == 0:\n                lm.try_cancel(sched)\n"))

"""Reported cases of the safety gate: ordering, counts, phases and lifetimes."""

from __future__ import annotations

from reported import Bad, Case, Good, edit

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

TMEM_EPILOGUE = '''
@cake.schedule(target=("sm_100a", "sm_103a"))
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32], M: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(65536)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=32768, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    acc = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    mma = lm.role(warps=[5])
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True)
    one = lm.pipeline(stages=1)
    acc_full = lm.barrier(pipeline=one, prod=[mma], cons=[epi], arrive="mma")
    acc_free = lm.barrier(pipeline=one, prod=[epi], cons=[mma], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), 1))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.tma_load(A, coords=(0, t.m * 128), stage=s, barrier=full)
            b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
    with mma:
        for t in lm.tiles(sched):
            d = lm.step(one)
            lm.wait(acc_free, stage=d)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(acc, a[s], b[s], init=True)
            lm.commit(empty, stage=s)
            lm.commit(acc_full, stage=d)
    with epi:
        for t in lm.tiles(sched):
            d = lm.step(one)
            lm.wait(acc_full, stage=d)
            c = lm.tmem_load(acc)
            lm.tmem_wait("ld")
            lm.arrive(acc_free, stage=d)
            lm.store(C, c, coords=(0, t.m * 128), clip=True)
'''
"""The epilogue hands the accumulator back once its loads have landed."""

HELD = edit(TMEM_EPILOGUE, ('            lm.tmem_wait("ld")\n            lm.arrive(acc_free, stage=d)\n', '            lm.arrive(acc_free, stage=d)\n            lm.tmem_wait("ld")\n'))

UNARMED = edit(TWO_BARRIERS, ('full_a = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")', 'full_a = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="warp")'),
               ("load = lm.role(warps=[4])", "load = lm.role(warps=range(4, 8))"))  # fmt: skip
REINIT = edit(ONE_BARRIER, ("            lm.wait(empty, stage=s)\n", "            lm.wait(empty, stage=s)\n            lm.init(full_a, 1)\n"))

TWO_GROUPS = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.tma2d[LM.bf16], Y: LM.gmem2d[LM.bf16], Z: LM.gmem2d[LM.bf16], N: LM.i32):
    pool = lm.smem(16384)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    c0 = lm.role(warps=range(0, 4))
    c1 = lm.role(warps=range(4, 8))
    load = lm.role(warps=[8])
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[c0, c1], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[c0, c1], cons=[load], arrive="member", primed=True, init_count=2)
    with load:
        for i in lm.range(N):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            x.tma_load(X, coords=(0, 64 * i), stage=s, barrier=full)
    with c0:
        own0 = 0
        for i in lm.range(N):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            v = x[s].load(form="vec")
            lm.arrive(empty, stage=s)
            lm.store(Y, v, coords=(0, 64 * i))
    with c1:
        for i in lm.range(N):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            v = x[s].load(form="vec")
            lm.arrive(empty, stage=s)
            lm.store(Z, v, coords=(0, 64 * i))
'''.replace("        own0 = 0\n", "")
"""Two consumers release every slot."""

UNSYMMETRIC = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32]):
    pool = lm.smem(16384)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.f32)
    p = lm.role(warps=range(0, 4))
    q = lm.role(warps=range(4, 8))
    one = lm.pipeline(stages=1)
    ready = lm.barrier(pipeline=one, prod=[p], cons=[q], arrive="thread", init_count=128)
    with p:
        s = lm.step(one)
        x.store(lm.load(X, coords=(0, 0), shape=(64, 64)))
        lm.arrive(ready, stage=s)
    with q:
        s = lm.step(one)
        lm.wait(ready, stage=s)
        lm.store(Y, x.load(form="vec"), coords=(0, 0))
'''
"""128 threads only arrive, 128 others only wait."""

MEETING = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32]):
    pool = lm.smem(16384)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.f32)
    p = lm.role(warps=range(0, 4))
    q = lm.role(warps=range(4, 8))
    both = lm.named_barrier([p, q])
    with p:
        x.store(lm.load(X, coords=(0, 0), shape=(64, 64)))
        lm.sync(both)
    with q:
        lm.sync(both)
        lm.store(Y, x.load(form="vec"), coords=(0, 0))
'''

UNPRIMED = edit(ONE_BARRIER, (', primed=True', ''))

STATE_POOL = '''
@cake.schedule(target="sm_90a")
def f(lm, INDEX: LM.gmem1d[LM.i32, "B"].const, POOL: LM.gmem2d[LM.f32, "P", 128], OUT: LM.gmem2d[LM.f32, "B", 128], B: LM.i32, P: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(INDEX, -1, P)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            row = lm.ld(INDEX, t.b)
            if row >= 0:
                lm.store(OUT, lm.load(POOL, coords=(0, row), shape=(1, 128)), coords=(0, t.b))
'''
"""A state pool behind an index that is padded with -1."""

UNGUARDED = edit(STATE_POOL, ("            if row >= 0:\n                lm.store", "            lm.store"))
MASKED_VALUE = edit(STATE_POOL, ("            if row >= 0:\n                lm.store(OUT, lm.load(POOL, coords=(0, row), shape=(1, 128)), coords=(0, t.b))",
                                 "            x = lm.load(POOL, coords=(0, row), shape=(1, 128))\n            lm.store(OUT, lm.where(row >= 0, x, 0.0), coords=(0, t.b))"))

VARLEN = '''
@cake.schedule(target="sm_90a")
def f(lm, CU: LM.gmem1d[LM.i32, "B1"].const, LEN: LM.gmem1d[LM.i32, "B"], TOTAL: LM.i32, B: LM.i32, B1: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(B > 0 and TOTAL > 0 and B1 == B + 1)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(TOTAL, 64) + B,), names=("i",))
    with work:
        for t in lm.tiles(sched):
            if t.i < B:
                n = lm.ld(CU, t.i + 1) - lm.ld(CU, t.i)
                lm.store(LEN, n, coords=(t.i,))
'''
"""More tiles than sequences: the offsets are read behind the check."""

READ_FIRST = edit(VARLEN, ("            if t.i < B:\n                n = lm.ld(CU, t.i + 1) - lm.ld(CU, t.i)\n                lm.store", "            n = lm.ld(CU, t.i + 1) - lm.ld(CU, t.i)\n            if t.i < B:\n                lm.store"))
PADDED = edit(READ_FIRST, ("B1 == B + 1", "B1 == B + lm.cdiv(TOTAL, 64) + 1"))

OFFSETS = '''
@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32], B: LM.i32, T: LM.i32, H: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(B > 0 and B <= 64 and T > 0 and T <= 65536 and H > 0 and H <= 64)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B, T, H), names=("b", "t", "h"))
    with work:
        for x in lm.tiles(sched):
            first = ((lm.cast(x.b, lm.i64) * T + x.t) * H + x.h) * 128
            lm.store(Y, lm.load(X, coords=(first,), shape=(128,)), coords=(first,))
'''
"""The offset of a row of 128 in 64 bits: up to 64 * 65536 * 64 * 128."""

WRAPPED = edit(OFFSETS, ("lm.cast(x.b, lm.i64)", "x.b"))
SMALL = edit(WRAPPED, ("T <= 65536", "T <= 2048"))

SPLIT = '''
@cake.schedule(target="sm_90a")
def f(lm, P: LM.gmem2d[LM.f32], C: LM.gmem1d[LM.f32], FLAGS: LM.gmem1d[LM.i32].zeroed, G: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(2, G), names=("k", "g"))
    with work:
        for t in lm.tiles(sched):
            if t.k == 0:
                lm.store(C, lm.load(P, coords=(0, t.g), shape=(1, 512)), coords=(t.g * 512,))
                lm.sync(cta)
                lm.signal(FLAGS, t.g, 1)
            if t.k > 0:
                lm.spin(FLAGS, t.g, 1)
'''
"""Blocks of a split wait for a block of the same launch, in a grid that need not be resident."""

TWO_KERNELS = '''
@cake.schedule(target="sm_90a")
def partials(lm, A: LM.gmem2d[LM.f32, "R", 512], P: LM.gmem2d[LM.f32, 2, 512], R: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(2,), names=("k",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(1, 512), dtype=lm.f32, form="vec", init=0.0)
            for r in lm.range(R // 2):
                total = total + lm.load(A, coords=(0, t.k * (R // 2) + r), shape=(1, 512))
            lm.store(P, total, coords=(0, t.k))

@cake.schedule(target="sm_90a")
def add(lm, P: LM.gmem2d[LM.f32, 2, 512], C: LM.gmem2d[LM.f32, 1, 512]):
    work = lm.role(warps=range(0, 4))
    with work:
        lm.store(C, lm.load(P, coords=(0, 0), shape=(1, 512)) + lm.load(P, coords=(0, 1), shape=(1, 512)), coords=(0, 0))

@cake.plan()
def split(lm, A: LM.gmem2d[LM.f32], C: LM.gmem2d[LM.f32], R: LM.i32):
    p = lm.workspace(shape=(2, 512), dtype=lm.f32)
    lm.run(partials, A=A, P=p, R=R)
    lm.run(add, P=p, C=C)
'''
"""Partial sums in a workspace, added by a second launch."""

TWO_ACCUMULATORS = '''
@cake.schedule(target="sm_90a")
def f(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32]):
    pool = lm.smem(24576)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=8192, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    with load:
        s = lm.step(ring)
        a.tma_load(A, coords=(0, 0), stage=s, barrier=full)
        b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
    with math:
        old = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        new = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.mma(old, a, b.rows(0, 64), init=True)
        lm.mma(new, a, b.rows(64, 64), init=True)
        lm.mma_wait(pending=1)
        lm.store(C, old, coords=(0, 0))
        lm.mma_wait(pending=0)
        lm.store(C, new, coords=(64, 0))
'''
"""The older accumulator is read while the younger group is in flight."""

READ_EARLY = edit(TWO_ACCUMULATORS, ("        lm.mma_wait(pending=0)\n        lm.store(C, new, coords=(64, 0))\n", "        lm.store(C, new, coords=(64, 0))\n        lm.mma_wait(pending=0)\n"))


CASES = (
    Case("C008", "safety", "MoonshotAI/FlashKDA#24",
         "a tile written by ordinary stores is handed to a TMA store without a proxy fence, or with one on the issuing side after the meeting",
         "the fence before the meeting",
         (Bad(edit(EPILOGUE, ("        lm.fence_proxy()\n", "")), "S006", "o.store("),
          Bad(edit(EPILOGUE, ("        lm.fence_proxy()\n        lm.sync(group)\n", "        lm.sync(group)\n        lm.fence_proxy()\n")), "S006", "o.tma_store")),
         (Good(EPILOGUE),)),
    Case("C012", "safety", "facebookexperimental/CUTracer#106",
         "the wait for A stands behind the MMA, or there is no wait for B", "one barrier for both operands and one wait; or two waits before the MMA",
         (Bad(A_AFTER, "S004", "lm.mma("), Bad(B_NEVER, "S004", "lm.mma(")), (Good(ONE_BARRIER), Good(TWO_BARRIERS))),
    Case("C014", "safety", "NVIDIA/Fuser#3561, NVIDIA/cutlass#2508",
         "a slot is released right behind the MMA that reads it", "the slot of the step before, once one group at most is in flight",
         (Bad(RELEASE_TOO_EARLY, "S005", "lm.arrive(empty"),), (Good(OVERLAPPED),)),
    Case("C016", "safety", "NVIDIA/Fuser#5448",
         "the staging tile is written again while a store may still read it, the wait stands after the loop", "a wait for the read at the loop's end",
         (Bad(WAIT_OUTSIDE, "S011", "tile.store"),), (Good(STAGING),),
         remark="a store is its own group: there is no commit to forget"),
    Case("C018", "safety", "deepseek-ai/DeepGEMM#343, triton-lang/triton#7293",
         "a tensor map is edited in place for the next group", "one map for all groups, the group is in the coordinates and in `rows=`",
         (Bad(REWRITTEN, "N028", "lm.modify_desc"),), (Good(GROUPED),), outcome="no such construct",
         remark="maps are built by the launcher and constant; `kind=\"grouped\"` replaces the edit"),
    Case("C020", "safety", "triton-lang/triton#9456, triton-lang/triton#10656",
         "the cluster barrier inside one role; an mbarrier wait on one side and the cluster barrier on the other", "every warp passes the cluster barrier equally often",
         (Bad(SUBSET, "S009", "lm.cluster_sync"), Bad(CROSSED, "S023", "lm.cluster_sync")), (Good(CLUSTER), Good(MIXED_WAITS))),
    Case("C022", "safety", "deepseek-ai/DeepGEMM#415",
         "129 tiles a problem and a cluster of two: one pair belongs to two problems, only one of its CTAs may multicast", "130 tiles a problem, so that no pair straddles two",
         (Bad(edit(STRADDLE, ("PER_GROUP=130", "PER_GROUP=129")), "S030", "b.tma_load"), Bad(RANK_ONLY, "S018", "if lm.cta_rank")), (Good(STRADDLE),)),
    Case("C024", "safety", "facebookexperimental/triton#908",
         "a query of the hardware's work queue whose answer only one CTA of the pair expects", "the scheduler `kind=\"clc\"`, which every CTA of the pair runs through",
         (Bad(ASKED_BY_HAND, "N028", "lm.try_cancel"),), (Good(WORK_QUEUE),), outcome="no such construct"),
    Case("C026", "safety", "NVIDIA/cutlass#3652, NVIDIA/cutlass#2525",
         "the accumulator is handed back before the loads from it have landed", "the wait for the loads before the arrive",
         (Bad(HELD, "S014", "lm.arrive(acc_free"),), (Good(TMEM_EPILOGUE),)),
    Case("C028", "safety", "nvfp4-megamoe-kernel (author's notes)",
         "copies on a barrier that expects no bytes; a barrier that is initialised again in the loop", "two copies on one barrier of kind `tx`",
         (Bad(UNARMED, "S018", "full_a = "), Bad(REINIT, "N028", "lm.init")), (Good(ONE_BARRIER),),
         remark="initialisation and the announcement of bytes are derived, once a phase"),
    Case("C030", "safety", "NVIDIA/cutlass#2404, NVIDIA/cutlass#2418",
         "a count of 1 where two groups release a slot", "a count of 2 with one thread a group, 256 with every thread",
         (Bad(edit(TWO_GROUPS, ("init_count=2", "init_count=1")), "S002", "empty = "),),
         (Good(TWO_GROUPS), Good(edit(TWO_GROUPS, ('arrive="member", primed=True, init_count=2', 'arrive="thread", primed=True, init_count=256'))))),
    Case("C031", "safety", "deepseek-ai/FlashMLA#41, deepseek-ai/FlashMLA#57",
         "counts that disagree about who takes part: 256 stated for 128 arrivals; a barrier of one role that another comes to", "one side only arrives, the other only waits",
         (Bad(edit(UNSYMMETRIC, ("init_count=128", "init_count=256")), "S002", "ready = "), Bad(edit(MEETING, ("lm.named_barrier([p, q])", "lm.named_barrier(p)")), "S010", "lm.")),
         (Good(UNSYMMETRIC), Good(MEETING)),
         remark="a named barrier has no arrive without a wait, its count follows from its roles; the unsymmetric meeting is an mbarrier"),
    Case("C032", "safety", "triton-lang/triton#11296",
         "the producer's first wait is on a barrier that nobody has arrived on and that is not primed", "the same wait on a primed barrier",
         (Bad(UNPRIMED, "S023", "empty = "),), (Good(ONE_BARRIER),)),
    Case("C034", "safety", "sgl-project/sglang#21558, radixark/miles#2079",
         "a row number that may be -1 goes into the address; the value is masked afterwards", "the load behind a check of the row number",
         (Bad(UNGUARDED, "D031", "lm.store(OUT"), Bad(MASKED_VALUE, "D031", "x = lm.load")), (Good(STATE_POOL),)),
    Case("C035", "safety", "Dao-AILab/flash-attention#2333",
         "offsets are read for tiles beyond the last sequence", "the check first, or padded offsets",
         (Bad(READ_FIRST, "D031", "n = lm.ld"),), (Good(VARLEN), Good(PADDED))),
    Case("C036", "safety", "fla-org/flash-linear-attention#1080, triton-lang/triton#832, databricks/megablocks#185",
         "an offset of up to 2^35 elements in 32 bits", "one factor widened to 64 bits, or fewer tokens",
         (Bad(WRAPPED, "D032", "lm.store(Y"),), (Good(OFFSETS), Good(SMALL))),
    Case("C037", "safety", "ROCm/aiter#4622, ROCm/aiter#3288, NVIDIA/cutlass#1296",
         "a block spins on a word that another block of a grid of any size writes", "two launches with a workspace",
         (Bad(SPLIT, "Q010", "lm.spin"),), (Good(TWO_KERNELS),)),
    Case("C038", "safety", "triton-lang/triton#8964",
         "the accumulator is stored before its group is retired", "an older accumulator is stored while a younger group is in flight",
         (Bad(READ_EARLY, "S005", "lm.store(C, new"),), (Good(TWO_ACCUMULATORS), Good(OVERLAPPED))),
)  # fmt: skip

"""Schedules of the safety cases: tensor memory, counts, global memory, accumulators."""

from __future__ import annotations

from reported import edit
from texts_pipelines import (
    ONE_BARRIER,
    TWO_BARRIERS,
)  # fmt: skip

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

GATHER = '''
@cake.schedule(target="sm_90a")
def f(lm, INDEX: LM.gmem1d[LM.i32].const, X: LM.gmem2d[LM.f32], OUT: LM.gmem2d[LM.f32], P: LM.i32):
    lm.assume_values(INDEX, -1, P)
    work = lm.role(warps=range(0, 4))
    with work:
        model = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
        rows = lm.load(INDEX, coords=(0,), shape=(64,), form="rowvec", like=model)
        x = lm.load(X, coords=(0, rows), shape=(64, 128), form="acc", like=model, mask=rows >= 0)
        lm.store(OUT, x, coords=(0, 0))
'''
"""Rows by a list of numbers that is padded with -1, masked at the access."""
UNMASKED = edit(GATHER, (", mask=rows >= 0", ""), ("lm.store(OUT, x,", "lm.store(OUT, lm.where(rows >= 0, x, 0.0),"))

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

"""Small correct schedules that the rules' examples are made from, so that an example differs from a good text by what it is about."""

from __future__ import annotations


def edit(text: str, *changes: tuple[str, str]) -> str:
    """`text` with each (old, new) applied once; raises `ValueError` where `old` does not stand in it."""
    for old, new in changes:
        if old not in text:
            raise ValueError(f"the example has no {old!r}")
        text = text.replace(old, new, 1)
    return text


COPY = '''
@cake.schedule(target="sm_90a")
def copy(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    work = lm.role(warps=range(0, 4))
    with work:
        x = lm.load(X, coords=(0,), shape=(512,))
        lm.store(Y, x, coords=(0,))
'''

TILE = '''
@cake.schedule(target="sm_90a")
def tile(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32]):
    pool = lm.smem(24576)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=8192, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    with load:
        s = lm.step(ring)
        a.tma_load(A, coords=(0, 0), stage=s, barrier=full)
        b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.mma(acc, a, b, init=True)
        lm.mma_wait(pending=0)
        lm.store(C, acc, coords=(0, 0))
'''
"""One output tile: two TMA loads, one wgmma, one store from registers."""

LOOP = '''
@cake.schedule(target="sm_90a")
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.tma2d[LM.bf16], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    pool = lm.smem(65536)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    c = pool.view(offset=49152, shape=(64, 128), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    load = lm.role(warps=range(4, 8), regs=40)
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    own = lm.named_barrier(math)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 128)))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
                b.tma_load(B, coords=(k * 64, t.n * 128), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, a[s], b[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store_wait(pending=0)
            lm.sync(own)
            c.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            c.tma_store(C, coords=(t.n * 128, t.m * 64))
        lm.store_wait(pending=0)
'''
"""A warp-specialised GEMM with a two-slot ring and a TMA store."""

MULTICAST = '''
@cake.schedule(target="sm_90a")
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0)
    pool = lm.smem(49152)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster")
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 128)), cluster=(2, 1))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
                b.tma_load(B, coords=(k * 64, t.n * 128), stage=s, barrier=full, multicast="m")
    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, a[s], b[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(C, acc, coords=(t.n * 128, t.m * 64), mask=lm.in_bounds(acc, rows=M - t.m * 64, cols=N - t.n * 128))
'''
"""A GEMM whose clusters of two share the tiles of B."""

SYNC_MMA = '''
@cake.schedule(target="sm_80")
def tile(lm, A: LM.gmem2d[LM.bf16], B: LM.gmem2d[LM.bf16], C: LM.gmem2d[LM.f32]):
    pool = lm.smem(12288)
    a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    b = pool.view(offset=4096, shape=(128, 32), dtype=lm.bf16, swizzle="64b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
        a.cp_async(A, coords=(0, 0))
        b.cp_async(B, coords=(0, 0))
        lm.cp_commit()
        lm.cp_wait(pending=0)
        lm.sync(cta)
        for k in lm.static_range(2):
            x = a.cols(16 * k, 16).ldmatrix(form="a", like=acc)
            y = b.cols(16 * k, 16).ldmatrix(form="b", like=acc)
            lm.mma(acc, x, y)
        lm.store(C, acc, coords=(0, 0))
'''
"""One output tile with cp.async and mma.sync, for every target."""

TENSOR_MEMORY = '''
@cake.schedule(target="sm_100a")
def tile(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32]):
    pool = lm.smem(32768)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=16384, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    acc = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    load = lm.role(warps=[0])
    mma = lm.role(warps=[1])
    out = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    accp = lm.pipeline(stages=1)
    done = lm.barrier(pipeline=accp, prod=[mma], cons=[out], arrive="mma")
    with load:
        s = lm.step(ring)
        a.tma_load(A, coords=(0, 0), stage=s, barrier=full)
        b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
    with mma:
        s = lm.step(ring)
        lm.wait(full, stage=s)
        lm.mma(acc, a, b, init=True)
        d = lm.step(accp)
        lm.commit(done, stage=d)
    with out:
        d = lm.step(accp)
        lm.wait(done, stage=d)
        x = lm.tmem_load(acc)
        lm.tmem_wait("ld")
        lm.store(C, x, coords=(0, 0))
'''
"""One output tile through tensor memory."""

BLOCK_SCALED = '''
@cake.schedule(target="sm_100a")
def tile(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.tma4d[LM.ue8m0, "MB", "KB", 32, 16], SB: LM.tma4d[LM.ue8m0, "NB", "KB", 32, 16],
         C: LM.gmem2d[LM.f32, 128, 128], M: LM.i32, N: LM.i32, K: LM.i32, MB: LM.i32, NB: LM.i32, KB: LM.i32):
    lm.assume(K > 0)
    pool = lm.smem(67584)
    a = pool.view(offset=0, shape=(128, 128), dtype=lm.e4m3, stage=2, swizzle="128b")
    b = pool.view(offset=32768, shape=(128, 128), dtype=lm.e4m3, stage=2, swizzle="128b")
    sa = pool.view(offset=65536, shape=(32, 16), dtype=lm.ue8m0, stage=2)
    sb = pool.view(offset=66560, shape=(32, 16), dtype=lm.ue8m0, stage=2)
    acc = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    ta = lm.tmem(cols=128, width=4, shape=(128, 16), dtype=lm.ue8m0)
    tb = lm.tmem(cols=132, width=4, shape=(128, 16), dtype=lm.ue8m0)
    load = lm.role(warps=[0])
    mma = lm.role(warps=[1])
    out = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True)
    accp = lm.pipeline(stages=1)
    done = lm.barrier(pipeline=accp, prod=[mma], cons=[out], arrive="mma")
    kt = lm.cdiv(K, 128)
    with load:
        for k in lm.range(kt):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.tma_load(A, coords=(k * 128, 0), stage=s, barrier=full)
            b.tma_load(B, coords=(k * 128, 0), stage=s, barrier=full)
            sa.tma_load(SA, coords=(0, 0, k, 0), stage=s, barrier=full)
            sb.tma_load(SB, coords=(0, 0, k, 0), stage=s, barrier=full)
    with mma:
        for k in lm.range(kt):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.tmem_copy(ta, sa[s])
            lm.tmem_copy(tb, sb[s])
            lm.mma(acc, a[s], b[s], init=(k == 0), scale_a=lm.scales(ta, block=32, dtype=lm.ue8m0, layout="tmem_128x4"),
                   scale_b=lm.scales(tb, block=32, dtype=lm.ue8m0, layout="tmem_128x4"))
            lm.commit(empty, stage=s)
        d = lm.step(accp)
        lm.commit(done, stage=d)
    with out:
        d = lm.step(accp)
        lm.wait(done, stage=d)
        x = lm.tmem_load(acc)
        lm.tmem_wait("ld")
        lm.store(C, x, coords=(0, 0))
'''
"""One output tile of e4m3 operands that have a scale every 32 elements of K, in atoms of 128 rows and four scales."""

NEAREST = '''
@cake.schedule(target="sm_90a")
def nearest(lm, X: LM.tma2d[LM.bf16], MU: LM.tma2d[LM.bf16], IDX: LM.gmem1d[LM.i32], NP: LM.i32, NK: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(40960)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    mu = pool.view(offset=8192, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    xp = lm.pipeline(stages=1)
    x_full = lm.barrier(pipeline=xp, prod=[load], cons=[math], arrive="tx")
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(NP, 64),), names=("m",))
    kt = lm.cdiv(NK, 128)
    with load:
        for t in lm.tiles(sched):
            sx = lm.step(xp)
            x.tma_load(X, coords=(0, t.m * 64), stage=sx, barrier=x_full)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                mu.tma_load(MU, coords=(0, k * 128), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            sx = lm.step(xp)
            lm.wait(x_full, stage=sx)
            best = (lm.rowvec(acc, init=-lm.inf), lm.rowvec(acc, init=0))
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, x, mu[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                score = lm.where(lm.iota(acc, axis=1, base=k * 128) < NK, acc, -lm.inf)
                best = lm.argmax(score, axis=1, base=k * 128, into=best)
            val, idx = lm.finish(best)
            lm.store(IDX, idx, coords=(t.m * 64,), mask=lm.iota(acc, axis=0, base=t.m * 64) < NP)
'''
"""The best of many rows for each row: an argmax fused behind an MMA, with the filled columns masked."""

FLAG = '''
@cake.schedule(target="sm_90a")
def first_above(lm, X: LM.gmem1d[LM.f32, "N"], limit: LM.f32, place: LM.gmem1d[LM.i32, 1], N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            looking = 1
            for i in lm.range(N):
                if looking > 0:
                    if lm.ld(X, i) > limit:
                        looking = 0
                        lm.store(place, i, coords=(0,))
'''

CHUNK = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def chunk(lm, Q: LM.gmem2d[LM.bf16, "T", 64], K: LM.gmem2d[LM.bf16, "T", 64], V: LM.gmem2d[LM.bf16, "T", 64], S: LM.gmem3d[LM.bf16, "N", 64, 64], G: LM.gmem1d[LM.f32, "T"],
          Y: LM.gmem2d[LM.bf16, "T", 64], T: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(T == N * 64)
    pool = lm.smem(4 * 8192)
    q = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    k = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    v = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    st = pool.view(offset=24576, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(N,), names=("c",))
    with work:
        for t in lm.tiles(sched):
            q.cp_async(Q, coords=(0, t.c * 64))
            k.cp_async(K, coords=(0, t.c * 64))
            v.cp_async(V, coords=(0, t.c * 64))
            st.cp_async(S, coords=(0, 0, t.c))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(own)
            z = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            y = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            row = lm.load(G, coords=(t.c * 64,), shape=(64,), form="rowvec", like=z)
            col = lm.load(G, coords=(t.c * 64,), shape=(64,), form="colvec", like=z)
            lm.mma(z, q.ldmatrix(form="a"), k.ldmatrix(form="b"), init=True)
            lm.mma(y, q.ldmatrix(form="a"), st.ldmatrix(form="b"), init=True)
            p = lm.where(lm.iota(z, 1) <= lm.iota(z, 0), z * lm.exp(row - col), 0.0)
            y = y * lm.exp(row)
            lm.mma(y, lm.cast(p, lm.bf16, form="a"), v.T.ldmatrix(form="b"))
            lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.c * 64))
'''
"""A chunk of linear attention: its own tokens behind a mask, weighed by decay, and what the state before it adds."""

PLAN = COPY + '''

@cake.plan()
def twice(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    z = lm.workspace(shape=(512,), dtype=lm.f32)
    lm.run(copy, X=X, Y=z)
    lm.run(copy, X=z, Y=Y)
'''
"""Two launches with a workspace between them."""

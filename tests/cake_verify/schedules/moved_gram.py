"""The lower triangle of a Gram matrix: both operands are the same tensor, tiles above the diagonal are left out."""


@cake.schedule(target="sm_90a")
def gram(lm, X: LM.tma2d[LM.bf16, "T", "D"], G: LM.gmem2d[LM.f32, "D", "D"], T: LM.i32, D: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(T > 0)
    lm.assume(D % 8 == 0)
    pool = lm.smem(65536)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    load = lm.role(warps=range(4, 8), regs=40)
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(D, 64), lm.cdiv(D, 64)))
    kt = lm.cdiv(T, 64)
    with load:
        for t in lm.tiles(sched):
            if t.n <= t.m:
                for k in lm.range(kt):
                    s = lm.step(ring)
                    lm.wait(empty, stage=s)
                    a.tma_load(X, coords=(t.m * 64, k * 64), stage=s, barrier=full)
                    b.tma_load(X, coords=(t.n * 64, k * 64), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            if t.n <= t.m:
                for k in lm.range(kt):
                    s = lm.step(ring)
                    lm.wait(full, stage=s)
                    lm.mma(acc, a[s].T, b[s].T, init=(k == 0))
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                lm.store(G, acc, coords=(t.n * 64, t.m * 64), clip=True)

"""Weight gradient: both operands lie K-outermost, so the tensor core reads both views transposed."""


@cake.schedule(target="sm_90a")
def gemm_wgrad(lm, DY: LM.tma2d[LM.bf16, "T", "M"], X: LM.tma2d[LM.bf16, "T", "N"], DW: LM.tma2d[LM.f32, "M", "N"],
               T: LM.i32, M: LM.i32, N: LM.i32, *, BN=128, BK=64, STAGES=4):
    """DW[M,N] = DY[T,M]^T X[T,N] in f32, stored through f32 staging in slices of 32 columns."""
    lm.launch(grid="persistent")
    lm.assume(T > 0)
    lm.assume(M % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * BK * 128 * 2, STAGES * BK * BN * 2
    pool = lm.smem(a_bytes + b_bytes + 2 * 128 * 32 * 4)
    dy = pool.view(offset=0, shape=(BK, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    x = pool.view(offset=a_bytes, shape=(BK, BN), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=a_bytes + b_bytes, shape=(128, 32), dtype=lm.f32, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    slots = lm.pipeline(stages=2)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), raster="n", swizzle=4)
    steps = lm.cdiv(T, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(steps):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                dy.tma_load(DY, coords=(t.m * 128, k * BK), stage=s, barrier=full)
                x.tma_load(X, coords=(t.n * BN, k * BK), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(steps):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, dy[s].cols(64 * math.index, 64).T, x[s].T, init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            for j in lm.static_range(BN // 32):
                c = lm.step(slots)
                lm.store_wait(pending=1)
                lm.sync(own)
                part = out[c].rows(64 * math.index, 64)
                part.store(acc.cols(32 * j, 32))
                lm.fence_proxy()
                lm.sync(own)
                part.tma_store(DW, coords=(t.n * BN + 32 * j, t.m * 128 + 64 * math.index))
        lm.store_wait(pending=0)

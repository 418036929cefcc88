@cake.schedule(target="sm_120a")
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.bf16], M: LM.i32, N: LM.i32, K: LM.i32, *, BM=128, BN=128, BK=64, STAGES=2):
    lm.launch(grid="tiles")
    pool = lm.smem(STAGES * (BM + BN) * BK * 2)
    a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    b = pool.view(offset=STAGES * BM * BK * 2, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 8))
    load = lm.role(warps=[8])
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), swizzle=4)
    kt = lm.cdiv(K, BK)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=full)
                b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 4), init=0.0)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                for kk in lm.static_range(BK // 16):
                    x = a[s].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    y = b[s].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, x, y)
                lm.arrive(empty, stage=s)
            lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.m * BM), mask=lm.in_bounds(acc, rows=M - t.m * BM, cols=N - t.n * BN))

"""Split-K GEMM whose parts are added by the copy engine: every CTA of a column of the grid reduces its tile into the same output."""


@cake.schedule(target=("sm_90a",))
def gemm_add_up(lm, A: LM.tma2d[LM.f16, "M", "K"], B: LM.tma2d[LM.f16, "N", "K"], C: LM.tma2d[LM.f32, "M", "N"].zeroed,
                M: LM.i32, N: LM.i32, K: LM.i32, *, BN=64, BK=64, STAGES=3, SPLIT=3):
    """C += A B^T, a third of K a tile; the order of the sums is free."""
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 4 == 0)
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes)
    sa = pool.view(offset=0, shape=(64, BK), dtype=lm.f16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.f16, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=0, shape=(64, BN), dtype=lm.f32, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), lm.cdiv(N, BN), SPLIT), names=("m", "n", "p"))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt * t.p // SPLIT, kt * (t.p + 1) // SPLIT):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(kt * t.p // SPLIT, kt * (t.p + 1) // SPLIT):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s], sb[s])
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.sync(own)
            sc.store(acc)
            lm.fence_proxy()
            lm.sync(own)
            sc.tma_reduce(C, coords=(t.n * BN, t.m * 64), op="add", order="any")
        lm.store_wait(pending=0)

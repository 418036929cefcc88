"""GEMM on 2 x 2 clusters: A tiles are shared along n, B tiles along m, each CTA loads half of both."""


@cake.schedule(target="sm_90a")
def gemm_multicast_2x2(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"],
                       M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=3):
    """C = A B^T in bf16 through one staging tile a member."""
    lm.launch(grid="persistent", cluster=(2, 2))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 128 * BN * 2)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=a_bytes + b_bytes, shape=(128, BN), dtype=lm.bf16, swizzle="128b")

    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), cluster=(2, 2))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full, multicast="n")
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full, multicast="m")

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        rows = 64 * math.index
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s].rows(rows, 64), sb[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store_wait(pending=0)
            lm.sync(own)
            mine = sc.rows(rows, 64)
            mine.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            mine.tma_store(C, coords=(t.n * BN, t.m * 128 + rows))
        lm.store_wait(pending=0)

"""A Blackwell GEMM that multiplies into one half of tensor memory while the epilogue drains the other."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_two_accumulators(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32,
                             *, BN=128, BK=64, STAGES=4):
    """A Blackwell GEMM that multiplies into one half of tensor memory while the epilogue drains the other."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 8 == 0 and N % 8 == 0)
    ab, bb = 128 * BK * 2, BN * BK * 2
    pool = lm.smem(STAGES * (ab + bb) + 128 * BN * 2)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=STAGES * ab, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=STAGES * (ab + bb), shape=(128, BN), dtype=lm.bf16, swizzle="128b")
    acc = lm.tmem(cols=0, width=2 * BN, shape=(128, 2 * BN), dtype=lm.f32)
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    mma = lm.role(warps=range(5, 6))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True)
    two = lm.pipeline(stages=2)
    done = lm.barrier(pipeline=two, prod=[mma], cons=[epi], arrive="mma")
    free = lm.barrier(pipeline=two, prod=[epi], cons=[mma], arrive="warp", primed=True)
    own = lm.named_barrier(epi)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), swizzle=4)
    kt = lm.cdiv(K, BK)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)
    with mma:
        for t in lm.tiles(sched):
            d = lm.step(two)
            lm.wait(free, stage=d)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc.cols(BN * d.index, BN), sa[s], sb[s], init=(k == 0))
                lm.commit(empty, stage=s)
            lm.commit(done, stage=d)
    with epi:
        for t in lm.tiles(sched):
            d = lm.step(two)
            lm.wait(done, stage=d)
            x = lm.tmem_load(acc.cols(BN * d.index, BN))
            lm.tmem_wait("ld")
            lm.arrive(free, stage=d)
            lm.store_wait(pending=0)
            lm.sync(own)
            out.store(lm.cast(x, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            out.tma_store(C, coords=(t.n * BN, t.m * 128))
        lm.store_wait(pending=0)

@cake.schedule(target="sm_103a")
def gemm_pdl_prefetch(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"].const, C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, BN=64, BK=64, STAGES=4):
    """Few rows: the weights are on their way to the second-level cache before the kernel in front has ended."""
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes)
    smem_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    acc = lm.tmem(cols=0, width=BN, shape=(128, BN), dtype=lm.f32)
    epi = lm.role(warps=range(0, 4))
    mma = lm.role(warps=range(4, 5))
    load = lm.role(warps=range(5, 6))
    ab = lm.pipeline(stages=STAGES)
    one = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[mma], cons=[load], arrive="mma", primed=True)
    done = lm.barrier(pipeline=one, prod=[mma], cons=[epi], arrive="mma")
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(N, BN), lm.cdiv(M, 128)), names=("n", "m"))
    kt = lm.cdiv(K, BK)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(lm.min(kt, STAGES)):
                smem_b[0].tma_prefetch(B, coords=(k * BK, t.n * BN))
            lm.pdl_wait()
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)
                smem_a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
    with mma:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s], smem_b[s], init=(k == 0))
                lm.commit(empty, stage=s)
            lm.commit(done, stage=lm.step(one))
    with epi:
        for t in lm.tiles(sched):
            lm.wait(done, stage=lm.step(one))
            lm.pdl_launch()
            lm.pdl_wait()
            x = lm.tmem_load(acc, form="rows")
            lm.tmem_wait("ld")
            lm.store(C, lm.cast(x, lm.bf16), coords=(t.n * BN, t.m * 128), clip=True)

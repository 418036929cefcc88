@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_half_columns(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.gmem1d[LM.f32, "M"], SB: LM.gmem1d[LM.f32, "N"], C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, BN=256, BK=128, STAGES=4):
    """e4m3 with a scale a row and a column: two warpgroups read the two halves of the accumulator."""
    lm.launch(grid="tiles")
    lm.assume(K > 0 and K % 16 == 0)
    pool = lm.smem(STAGES * (128 + BN) * BK)
    a = pool.view(offset=0, shape=(128, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    b = pool.view(offset=STAGES * 128 * BK, shape=(BN, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    acc = lm.tmem(cols=0, width=BN, shape=(128, BN), dtype=lm.f32)
    halves = lm.role(warps=range(0, 8), members=2)
    both = lm.role(warps=range(8, 9))
    other = lm.role(warps=range(9, 12))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[both], cons=[other], arrive="tx")
    used = lm.barrier(pipeline=ring, prod=[other], cons=[both], arrive="mma", primed=True)
    end = lm.pipeline(stages=1)
    whole = lm.barrier(pipeline=end, prod=[other], cons=[halves], arrive="mma")
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), raster="n")
    with both:
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, BK)):
                s = lm.step(ring)
                lm.wait(used, stage=s)
                a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)
    with other:
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, BK)):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, a[s], b[s], init=k == 0)
                lm.commit(used, stage=s)
            lm.commit(whole, stage=lm.step(end))
    with halves:
        for t in lm.tiles(sched):
            h = halves.index * (BN // 2)
            e = lm.step(end)
            lm.wait(whole, stage=e)
            for c in lm.static_range(BN // 2 // 32):
                y = lm.tmem_load(acc.cols(h + 32 * c, 32))
                lm.tmem_wait("ld")
                col = t.n * BN + h + 32 * c
                if col < N:
                    sa = lm.load(SA, coords=(t.m * 128,), shape=(128,), form="rowvec", like=y, clip=True)
                    sb = lm.load(SB, coords=(col,), shape=(32,), form="colvec", like=y, clip=True)
                    lm.store(C, lm.cast(y * sa * sb, lm.bf16), coords=(col, t.m * 128), clip=True)

@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_fp8_promote(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.gmem2d[LM.f32, "KB", "M"].const, SB: LM.gmem1d[LM.f32, "SBN"].const, C: LM.gmem2d[LM.bf16, "M", "N"],
                        M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, SBN: LM.i32, *, STAGES=4):
    """Scales that are no powers of two: every 128 deep product goes to its own set of columns, and four warps fetch it, scale it and add it to registers while the next ones run."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 128 == 0 and N % 128 == 0 and KB == K // 128 and SBN == (N // 128) * KB)
    slab = 128 * 128
    pool = lm.smem(2 * STAGES * slab)
    sa = pool.view(offset=0, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=STAGES * slab, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    parts = lm.tmem(cols=0, width=512, shape=(128, 512), dtype=lm.f32)
    promote = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    issue = lm.role(warps=range(5, 6))
    feed = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=feed, prod=[load], cons=[issue], arrive="tx")
    free = lm.barrier(pipeline=feed, prod=[issue], cons=[load], arrive="mma", primed=True)
    sets = lm.pipeline(stages=4)
    made = lm.barrier(pipeline=sets, prod=[issue], cons=[promote], arrive="mma")
    taken = lm.barrier(pipeline=sets, prod=[promote], cons=[issue], arrive="warp", primed=True)
    sched = lm.scheduler(kind="clc", tiles=(lm.cdiv(M, 128), N // 128), fetch=load)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(feed)
                lm.wait(free, stage=s)
                sa.tma_load(A, coords=(k * 128, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * 128, t.n * 128), stage=s, barrier=full)

    with issue:
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(feed)
                p = lm.step(sets)
                lm.wait(full, stage=s)
                lm.wait(taken, stage=p)
                lm.mma(parts.cols(p.index * 128, 128), sa[s], sb[s], init=True)
                lm.commit(free, stage=s)
                lm.commit(made, stage=p)

    with promote:
        for t in lm.tiles(sched):
            sum_ = lm.frag(shape=(128, 128), dtype=lm.f32, form="rows", init=0.0)
            own = lm.iota(sum_, axis=0, base=t.m * 128)
            for k in lm.range(KB):
                p = lm.step(sets)
                by_row = lm.load(SA, coords=(t.m * 128, k), shape=(128,), form="rowvec", like=sum_, mask=own < M)
                by = lm.ld(SB, t.n * KB + k)
                lm.wait(made, stage=p)
                x = lm.tmem_load(parts.cols(p.index * 128, 128))
                lm.tmem_wait("ld")
                lm.arrive(taken, stage=p)
                sum_ = sum_ + x * (by_row * by)
            lm.store(C, lm.cast(sum_, lm.bf16), coords=(t.n * 128, t.m * 128), mask=own < M)

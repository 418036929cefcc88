@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_i8_transformed(lm, W: LM.tma2d[LM.i8, "N", "K"], X: LM.tma2d[LM.bf16, "M", "K"], SW: LM.gmem1d[LM.f32, "N"], YT: LM.gmem2d[LM.bf16, "N", "M"], N: LM.i32, M: LM.i32, K: LM.i32, *, BM=64, STAGES=4, BK=64):
    """Weights of 8 bits: a warpgroup widens them into tensor memory, where the products read them; tokens come from shared memory. Y^T = (W X^T) * sw."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 16 == 0)
    lm.assume(M % 8 == 0)
    x_bytes = STAGES * BM * BK * 2
    pool = lm.smem(x_bytes + STAGES * 128 * BK)
    xs = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    ws = pool.view(offset=x_bytes, shape=(128, BK), dtype=lm.i8, stage=STAGES)
    acc = lm.tmem(cols=0, width=2 * BM, shape=(128, 2 * BM), dtype=lm.f32)
    wide = lm.tmem(cols=2 * BM, width=BK, shape=(128, 2 * BK), dtype=lm.bf16)

    widen = lm.role(warps=range(0, 4))
    epi = lm.role(warps=range(4, 8))
    tma = lm.role(warps=range(8, 9))
    issue = lm.role(warps=range(9, 10))

    wring = lm.pipeline(stages=STAGES)
    wfull = lm.barrier(pipeline=wring, prod=[tma], cons=[widen], arrive="tx")
    wfree = lm.barrier(pipeline=wring, prod=[widen], cons=[tma], arrive="warp", primed=True)
    xring = lm.pipeline(stages=STAGES)
    xfull = lm.barrier(pipeline=xring, prod=[tma], cons=[issue], arrive="tx")
    xfree = lm.barrier(pipeline=xring, prod=[issue], cons=[tma], arrive="mma", primed=True)
    aring = lm.pipeline(stages=2)
    afull = lm.barrier(pipeline=aring, prod=[widen], cons=[issue], arrive="warp")
    afree = lm.barrier(pipeline=aring, prod=[issue], cons=[widen], arrive="mma", primed=True)
    oring = lm.pipeline(stages=2)
    ofull = lm.barrier(pipeline=oring, prod=[issue], cons=[epi], arrive="mma")
    ofree = lm.barrier(pipeline=oring, prod=[epi], cons=[issue], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(N, 128), lm.cdiv(M, BM)), names=("n", "m"))
    blocks = lm.cdiv(K, BK)

    with tma:
        for t in lm.tiles(sched):
            for k in lm.range(blocks):
                w = lm.step(wring)
                lm.wait(wfree, stage=w)
                ws.tma_load(W, coords=(k * BK, t.n * 128), stage=w, barrier=wfull)
                x = lm.step(xring)
                lm.wait(xfree, stage=x)
                xs.tma_load(X, coords=(k * BK, t.m * BM), stage=x, barrier=xfull)
    with widen:
        for t in lm.tiles(sched):
            for k in lm.range(blocks):
                w = lm.step(wring)
                lm.wait(wfull, stage=w)
                row = lm.cast(ws[w].load(form="rows"), lm.f32)
                lm.arrive(wfree, stage=w)
                a = lm.step(aring)
                lm.wait(afree, stage=a)
                lm.tmem_store(wide.cols(a.index * BK, BK), lm.cast(row, lm.bf16))
                lm.tmem_wait("st")
                lm.arrive(afull, stage=a)
    with issue:
        for t in lm.tiles(sched):
            o = lm.step(oring)
            lm.wait(ofree, stage=o)
            for k in lm.range(blocks):
                x = lm.step(xring)
                lm.wait(xfull, stage=x)
                a = lm.step(aring)
                lm.wait(afull, stage=a)
                lm.mma(acc.cols(o.index * BM, BM), wide.cols(a.index * BK, BK), xs[x], init=(k == 0))
                lm.commit(xfree, stage=x)
                lm.commit(afree, stage=a)
            lm.commit(ofull, stage=o)
    with epi:
        for t in lm.tiles(sched):
            o = lm.step(oring)
            lm.wait(ofull, stage=o)
            y = lm.tmem_load(acc.cols(o.index * BM, BM))
            lm.tmem_wait("ld")
            lm.arrive(ofree, stage=o)
            scale = lm.load(SW, coords=(t.n * 128,), shape=(128,), form="rowvec", like=y, clip=True)
            lm.store(YT, lm.cast(y * scale, lm.bf16), coords=(t.m * BM, t.n * 128), clip=True)

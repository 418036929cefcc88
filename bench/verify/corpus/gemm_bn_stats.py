@cake.schedule(target="sm_90a")
def gemm_bn_stats(lm, X: LM.tma2d[LM.bf16, "M", "K"], W: LM.tma2d[LM.bf16, "N", "K"], Y: LM.tma2d[LM.bf16, "M", "N"], TOTAL: LM.gmem1d[LM.f32, "N"].zeroed, SQUARES: LM.gmem1d[LM.f32, "N"].zeroed, M: LM.i32, N: LM.i32, K: LM.i32, *, STAGES=4):
    """A 1 x 1 convolution that adds up what batch normalisation needs of every channel: sum and sum of squares of what it writes."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0 and K % 8 == 0 and N % 8 == 0)
    pool = lm.smem(STAGES * (128 + 128) * 128 + 128 * 256)
    xs = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    ws = pool.view(offset=STAGES * 128 * 128, shape=(128, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    ys = pool.view(offset=STAGES * 256 * 128, shape=(128, 128), dtype=lm.bf16, swizzle="128b")
    mathers = lm.role(warps=range(4, 12), members=2, regs=200)
    loader = lm.role(warps=range(0, 4), regs=56)
    p = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=p, prod=[loader], cons=[mathers], arrive="tx")
    empty = lm.barrier(pipeline=p, prod=[mathers], cons=[loader], arrive="member", primed=True, scope="cluster")
    own = lm.named_barrier(mathers, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 128)), cluster=(2, 1))
    with loader:
        for tile in lm.tiles(sched):
            for i in lm.range(lm.cdiv(K, 64)):
                s = lm.step(p)
                lm.wait(empty, stage=s)
                xs.tma_load(X, coords=(i * 64, tile.m * 128), stage=s, barrier=full)
                ws.tma_load(W, coords=(i * 64, tile.n * 128), stage=s, barrier=full, multicast="m")
    with mathers:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for tile in lm.tiles(sched):
            for i in lm.range(lm.cdiv(K, 64)):
                s = lm.step(p)
                lm.wait(full, stage=s)
                lm.mma(acc, xs[s].rows(64 * mathers.index, 64), ws[s], init=(i == 0))
                lm.mma_wait(pending=1)
                if i >= 1:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(p))
            lm.store_wait(pending=0)
            lm.sync(own)
            mine = ys.rows(64 * mathers.index, 64)
            mine.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            mine.tma_store(Y, coords=(tile.n * 128, tile.m * 128 + 64 * mathers.index))
            channel = lm.cast(mine.T.load(form="acc"), lm.f32)
            left = M - tile.m * 128 - 64 * mathers.index
            kept = lm.where(lm.iota(channel, 1) < left, channel, 0.0)
            lm.atomic(TOTAL, lm.sum(kept, axis=1), coords=(tile.n * 128,), order="any", clip=True)
            lm.atomic(SQUARES, lm.reduce(kept * kept, "add", axis=1), coords=(tile.n * 128,), order="any", clip=True)
        lm.store_wait(pending=0, read=False)

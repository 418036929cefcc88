@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_pair_halves(lm, W: LM.tma2d[LM.f16, "N", "K"], X: LM.tma2d[LM.f16, "M", "K"], Z: LM.gmem2d[LM.f16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, HALF=64, BK=64, RG=4):
    """256 x 128 a pair of CTAs; the epilogue warpgroup of each drains its 128 rows while the next tile is multiplied into the other half of tensor memory."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0 and K % 8 == 0)
    lm.assume(N % 8 == 0)
    space = lm.smem(RG * (128 + HALF) * BK * 2)
    xt = space.view(offset=0, shape=(128, BK), dtype=lm.f16, stage=RG, swizzle="128b")
    wt = space.view(offset=RG * 128 * BK * 2, shape=(HALF, BK), dtype=lm.f16, stage=RG, swizzle="128b")
    tm0 = lm.tmem(cols=0, width=2 * HALF, shape=(128, 2 * HALF), dtype=lm.f32)
    tm1 = lm.tmem(cols=2 * HALF, width=2 * HALF, shape=(128, 2 * HALF), dtype=lm.f32)
    drain = lm.role(warps=range(0, 4))
    feed = lm.role(warps=range(4, 5))
    issue = lm.role(warps=range(5, 6))
    ops = lm.pipeline(stages=RG)
    accs = lm.pipeline(stages=2)
    filled = lm.barrier(pipeline=ops, prod=[feed], cons=[issue], arrive="tx", scope="cluster")
    freed = lm.barrier(pipeline=ops, prod=[issue], cons=[feed], arrive="mma", scope="cluster", primed=True)
    ready = lm.barrier(pipeline=accs, prod=[issue], cons=[drain], arrive="mma", scope="cluster")
    taken = lm.barrier(pipeline=accs, prod=[drain], cons=[issue], arrive="warp", scope="cluster", primed=True)
    tiles = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 2 * HALF)))
    nk = lm.cdiv(K, BK)
    with drain:
        for t in lm.tiles(tiles):
            a = lm.step(accs)
            lm.wait(ready, stage=a)
            if a.index == 0:
                r = lm.tmem_load(tm0, form="rows")
                lm.tmem_wait("ld")
                lm.arrive(taken, stage=a)
                lm.store(Z, lm.cast(r, lm.f16), coords=(t.n * 2 * HALF, t.m * 128), clip=True)
            else:
                r = lm.tmem_load(tm1, form="rows")
                lm.tmem_wait("ld")
                lm.arrive(taken, stage=a)
                lm.store(Z, lm.cast(r, lm.f16), coords=(t.n * 2 * HALF, t.m * 128), clip=True)
    with feed:
        for t in lm.tiles(tiles):
            for k in lm.range(nk):
                s = lm.step(ops)
                lm.wait(freed, stage=s)
                xt.tma_load(X, coords=(k * BK, t.m * 128), stage=s, barrier=filled)
                wt.tma_load(W, coords=(k * BK, t.n * 2 * HALF + HALF * lm.cta_rank("m")), stage=s, barrier=filled)
    with issue:
        for t in lm.tiles(tiles):
            a = lm.step(accs)
            lm.wait(taken, stage=a)
            for k in lm.range(nk):
                s = lm.step(ops)
                lm.wait(filled, stage=s)
                if a.index == 0:
                    lm.mma(tm0, xt[s], wt[s], init=(k == 0), ctas=2)
                else:
                    lm.mma(tm1, xt[s], wt[s], init=(k == 0), ctas=2)
                lm.commit(freed, stage=s)
            lm.commit(ready, stage=a)

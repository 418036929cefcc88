"""Matrix transpose by tiles: a load ring, matrix loads, transposing matrix stores, a ring of stores in flight."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def transpose_tiles(lm, X: LM.tma2d[LM.bf16, "M", "N"], Y: LM.tma2d[LM.bf16, "N", "M"], M: LM.i32, N: LM.i32, *, STAGES=3, CSTAGES=3):
    """Y = X^T; up to CSTAGES - 1 stores are in flight while the next tile is written."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(M % 8 == 0 and N % 8 == 0)
    tile = 64 * 64 * 2
    pool = lm.smem((STAGES + CSTAGES) * tile)
    sx = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sy = pool.view(offset=STAGES * tile, shape=(64, 64), dtype=lm.bf16, stage=CSTAGES, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    slots = lm.pipeline(stages=CSTAGES)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 64)), swizzle=4)

    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            sx.tma_load(X, coords=(t.n * 64, t.m * 64), stage=s, barrier=full)

    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            x = sx[s].ldmatrix(form="acc")
            lm.arrive(empty, stage=s)
            c = lm.step(slots)
            lm.store_wait(pending=CSTAGES - 1)
            lm.sync(cta)
            sy[c].T.store(x)
            lm.fence_proxy()
            lm.sync(cta)
            sy[c].tma_store(Y, coords=(t.m * 64, t.n * 64))
        lm.store_wait(pending=0)

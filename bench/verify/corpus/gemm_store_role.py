"""GEMM with a role of its own for every step: one warp loads, two warpgroups multiply, one warp stores what they leave in a ring of tiles."""


@cake.schedule(target="sm_90a")
def gemm_store_role(lm, A: LM.tma2d[LM.f16, "M", "K"], B: LM.tma2d[LM.f16, "N", "K"], C: LM.tma2d[LM.f16, "M", "N"],
                    M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=3, OUTS=2):
    """C = A B^T; each warpgroup takes every other tile of the CTA's, the store warp takes them in order."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + OUTS * 128 * BN * 2)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.f16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.f16, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=a_bytes + b_bytes, shape=(128, BN), dtype=lm.f16, stage=OUTS, swizzle="128b")
    load = lm.role(warps=range(0, 1))
    store = lm.role(warps=range(1, 2))
    math = lm.role(warps=range(4, 12), members=2)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    out = lm.pipeline(stages=OUTS)
    ready = lm.barrier(pipeline=out, prod=[math], cons=[store], arrive="warp")
    free = lm.barrier(pipeline=out, prod=[store], cons=[math], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), raster="n", swizzle=2)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s].rows(64 * math.index, 64), sb[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            o = lm.step(out)
            lm.wait(free, stage=o)
            sc[o].rows(64 * math.index, 64).store(lm.cast(acc, lm.f16))
            lm.fence_proxy()
            lm.arrive(ready, stage=o)

    with store:
        stored = 0
        for t in lm.tiles(sched):
            o = lm.step(out)
            lm.wait(ready, stage=o)
            sc[o].tma_store(C, coords=(t.n * BN, t.m * 128))
            lm.store_wait(pending=1)
            if stored > 0:
                lm.arrive(free, stage=o.prev())
            stored = stored + 1
        lm.store_wait(pending=0, read=False)

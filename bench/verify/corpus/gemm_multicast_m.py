"""GEMM on clusters of two CTAs along m: both multiply by one B tile, each loads half of it for both."""


@cake.schedule(target="sm_90a")
def gemm_multicast_m(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"],
                     M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=4):
    """C = A B^T in f32, written straight from the accumulators."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes = STAGES * 128 * BK * 2
    pool = lm.smem(a_bytes + STAGES * BN * BK * 2)
    tile_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    tile_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")

    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True, scope="cluster")
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), cluster=(2, 1), raster="m", swizzle=4)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                tile_a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                tile_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full, multicast="m")

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, tile_a[s].rows(64 * math.index, 64), tile_b[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ring))
            lm.store(C, acc, coords=(t.n * BN, t.m * 128 + 64 * math.index), clip=True)

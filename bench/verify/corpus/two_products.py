"""Two products in one persistent kernel: a CTA takes all its tiles of the first, then all its tiles of the second, through one ring."""


@cake.schedule(target="sm_90a")
def two_products(lm, X: LM.tma2d[LM.bf16, "M", "K"], W: LM.tma2d[LM.bf16, "N", "K"].const, V: LM.tma2d[LM.bf16, "N2", "K"].const,
                 Y: LM.gmem2d[LM.bf16, "M", "N"], Z: LM.gmem2d[LM.f32, "M", "N2"], M: LM.i32, N: LM.i32, N2: LM.i32, K: LM.i32, *, BN=64, BK=64, STAGES=3):
    """Y = X W^T in bf16, Z = X V^T in f32."""
    lm.launch(grid="persistent")
    lm.assume(K % 8 == 0 and N % 8 == 0 and N2 % 4 == 0)
    lm.assume(K > 0)
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes)
    sa = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    first = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, BN)), raster="m", swizzle=4)
    second = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N2, BN)))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(first):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(X, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                sb.tma_load(W, coords=(k * BK, t.n * BN), stage=s, barrier=full)
        for t in lm.tiles(second):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(X, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                sb.tma_load(V, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(first):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s], sb[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(Y, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.m * 64), clip=True)
        for t in lm.tiles(second):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s], sb[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(Z, acc * 1.0, coords=(t.n * BN, t.m * 64), clip=True)

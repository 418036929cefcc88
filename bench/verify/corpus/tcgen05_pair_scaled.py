"""GEMM for pairs of CTAs in clusters of four, whose rows of A are scaled on the way to tensor memory by the CTA that owns them."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_pair_scaled(lm, A: LM.gmem2d[LM.bf16, "M", "K"], S: LM.gmem1d[LM.f32, "M"].const, B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"],
                        M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=3):
    """C = diag(S) A B^T: four warps of each CTA write its rows of A to tensor memory, and later read its half of the result from there."""
    lm.launch(grid="persistent", cluster=(4, 1))
    lm.assume(K > 0)
    lm.assume(K % 64 == 0 and N % 8 == 0)
    b_bytes = STAGES * (BN // 2) * BK * 2
    pool = lm.smem(b_bytes + 128 * BN * 2)
    sb = pool.view(offset=0, shape=(BN // 2, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=b_bytes, shape=(128, BN), dtype=lm.bf16, swizzle="128b")
    acc = lm.tmem(cols=0, width=2 * BN, shape=(128, 2 * BN), dtype=lm.f32)
    left = lm.tmem(cols=2 * BN, width=BK, shape=(128, 2 * BK), dtype=lm.bf16)
    rows = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    mma = lm.role(warps=[5])
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx", scope="cluster")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True, scope="cluster")
    two = lm.pipeline(stages=2)
    a_full = lm.barrier(pipeline=two, prod=[rows], cons=[mma], arrive="warp", scope="cluster")
    a_empty = lm.barrier(pipeline=two, prod=[mma], cons=[rows], arrive="mma", primed=True, scope="cluster")
    tile = lm.pipeline(stages=2)
    done = lm.barrier(pipeline=tile, prod=[mma], cons=[rows], arrive="mma", scope="cluster")
    free = lm.barrier(pipeline=tile, prod=[rows], cons=[mma], arrive="member", primed=True, scope="cluster")
    own = lm.named_barrier(rows)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), cluster=(4, 1))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sb.tma_load(B, coords=(k * BK, t.n * BN + lm.cta_rank("m") % 2 * (BN // 2)), stage=s, barrier=full)

    with mma:
        for t in lm.tiles(sched):
            d = lm.step(tile)
            lm.wait(free, stage=d)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                p = lm.step(two)
                lm.wait(a_full, stage=p)
                lm.mma(acc.cols(BN * d.index, BN), left.cols(BK * p.index, BK), sb[s], init=(k == 0), ctas=2)
                lm.commit(empty, stage=s)
                lm.commit(a_empty, stage=p)
            lm.commit(done, stage=d)

    with rows:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                x = lm.load(A, coords=(k * BK, t.m * 128), shape=(128, BK), form="rows", clip=True)
                scale = lm.load(S, coords=(t.m * 128,), shape=(128,), form="rowvec", like=x, clip=True)
                p = lm.step(two)
                lm.wait(a_empty, stage=p)
                lm.tmem_store(left.cols(BK * p.index, BK), lm.cast(lm.cast(x, lm.f32) * scale, lm.bf16))
                lm.tmem_wait("st")
                lm.arrive(a_full, stage=p)
            d = lm.step(tile)
            lm.wait(done, stage=d)
            y = lm.tmem_load(acc.cols(BN * d.index, BN))
            lm.tmem_wait("ld")
            lm.arrive(free, stage=d)
            lm.store_wait(pending=0)
            lm.sync(own)
            sc.store(lm.cast(y, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            sc.tma_store(C, coords=(t.n * BN, t.m * 128))
        lm.store_wait(pending=0)

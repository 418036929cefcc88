"""GEMM for consumer Blackwell: one warp feeds a TMA ring, eight warps multiply with mma.sync, results leave by TMA."""


@cake.schedule(target=("sm_120a", "sm_121a"))
def gemm_tma_mma_sync(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"],
                      M: LM.i32, N: LM.i32, K: LM.i32, *, BM=128, BN=128, BK=32, STAGES=4):
    """C = A B^T; a slot is free when every warp has loaded its fragments from it."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * BM * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + BM * BN * 2)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    sc = pool.view(offset=a_bytes + b_bytes, shape=(BM, BN), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 8))
    load = lm.role(warps=range(8, 9))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    cta = lm.named_barrier(math)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="m", swizzle=4)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(4, 2), init=0.0)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                for kk in lm.static_range(BK // 16):
                    a = sa[s].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sb[s].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.arrive(empty, stage=s)
            lm.store_wait(pending=0)
            lm.sync(cta)
            sc.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(cta)
            sc.tma_store(C, coords=(t.n * BN, t.m * BM))
        lm.store_wait(pending=0)

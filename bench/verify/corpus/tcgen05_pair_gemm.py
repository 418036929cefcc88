"""GEMM for pairs of CTAs: one thread multiplies for both, each holds its rows of A and half of B, and stores its own half of the result."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_pair_gemm(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"],
                      M: LM.i32, N: LM.i32, K: LM.i32, *, BN=256, BK=64, STAGES=4):
    """C = A B^T in 256 x BN tiles of a pair: the copies of both CTAs complete on the leader's barriers, its commits free the slots of both."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * (BN // 2) * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 128 * BN * 2)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN // 2, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=a_bytes + b_bytes, shape=(128, BN), dtype=lm.bf16, swizzle="128b")
    accs = lm.tmem(cols=0, width=2 * BN, shape=(128, 2 * BN), dtype=lm.f32)
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    mma = lm.role(warps=range(5, 6))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx", scope="cluster")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True, scope="cluster")
    turns = lm.pipeline(stages=2)
    acc_full = lm.barrier(pipeline=turns, prod=[mma], cons=[epi], arrive="mma", scope="cluster")
    acc_empty = lm.barrier(pipeline=turns, prod=[epi], cons=[mma], arrive="warp", primed=True, scope="cluster")
    cta = lm.named_barrier(epi)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), raster="m", swizzle=8, cluster=(2, 1))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN + lm.cta_rank("m") * (BN // 2)), stage=s, barrier=full)

    with mma:
        for t in lm.tiles(sched):
            d = lm.step(turns)
            lm.wait(acc_empty, stage=d)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(accs.cols(BN * d.index, BN), sa[s], sb[s], init=(k == 0), ctas=2)
                lm.commit(empty, stage=s)
            lm.commit(acc_full, stage=d)

    with epi:
        for t in lm.tiles(sched):
            d = lm.step(turns)
            lm.wait(acc_full, stage=d)
            c = lm.tmem_load(accs.cols(BN * d.index, BN))
            lm.tmem_wait("ld")
            lm.arrive(acc_empty, stage=d)
            lm.store_wait(pending=0)
            lm.sync(cta)
            sc.store(lm.cast(c, lm.bf16))
            lm.fence_proxy()
            lm.sync(cta)
            sc.tma_store(C, coords=(t.n * BN, t.m * 128))
        lm.store_wait(pending=0)

"""GEMM of nvfp4 operands for pairs of CTAs: e2m1 with an e4m3 scale every 16 elements of K, scales of the whole of B in both CTAs."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_nvf4_pair_gemm(lm, A: LM.tma2d[LM.e2m1, "M", "K"], B: LM.tma2d[LM.e2m1, "N", "K"], SA: LM.tma4d[LM.e4m3, "MB", "KB", 32, 16].const,
                           SB: LM.tma4d[LM.e4m3, "NB", "KB", 32, 16].const, C: LM.tma2d[LM.bf16, "M", "N"], alpha: LM.f32, M: LM.i32, N: LM.i32, K: LM.i32,
                           MB: LM.i32, NB: LM.i32, KB: LM.i32, *, BK=256, STAGES=2):
    """C = alpha (A SA) (B SB)^T in tiles of 256 x 128 a pair; one product of 64 elements of K takes one atom of scales of each operand."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0)
    lm.assume(K % BK == 0 and N % 8 == 0)
    lm.assume(KB == K // 64 and MB == lm.cdiv(M, 128) and NB == lm.cdiv(N, 128))
    a_bytes, b_bytes, s_bytes = STAGES * 128 * BK // 2, STAGES * 64 * BK // 2, STAGES * (BK // 64) * 512
    pool = lm.smem(a_bytes + b_bytes + 128 * 128 * 2 + 2 * s_bytes)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.e2m1, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(64, BK), dtype=lm.e2m1, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=a_bytes + b_bytes, shape=(128, 128), dtype=lm.bf16, swizzle="128b")
    ssa = pool.view(offset=a_bytes + b_bytes + 128 * 128 * 2, shape=(32 * BK // 64, 16), dtype=lm.e4m3, stage=STAGES)
    ssb = pool.view(offset=a_bytes + b_bytes + 128 * 128 * 2 + s_bytes, shape=(32 * BK // 64, 16), dtype=lm.e4m3, stage=STAGES)
    accs = lm.tmem(cols=0, width=256, shape=(128, 256), dtype=lm.f32)
    ta = lm.tmem(cols=256, width=BK // 16, shape=(128, BK // 4), dtype=lm.e4m3)
    tb = lm.tmem(cols=256 + BK // 16, width=BK // 16, shape=(128, BK // 4), dtype=lm.e4m3)
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    mma = lm.role(warps=[5])
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx", scope="cluster")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True, scope="cluster")
    two = lm.pipeline(stages=2)
    acc_full = lm.barrier(pipeline=two, prod=[mma], cons=[epi], arrive="mma", scope="cluster")
    acc_empty = lm.barrier(pipeline=two, prod=[epi], cons=[mma], arrive="member", primed=True, scope="cluster")
    own = lm.named_barrier(epi)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 128)), cluster=(2, 1))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * 128 + lm.cta_rank("m") % 2 * 64), stage=s, barrier=full)
                for j in lm.static_range(BK // 64):
                    ssa[s].rows(32 * j, 32).tma_load(SA, coords=(0, 0, k * (BK // 64) + j, t.m), stage=s, barrier=full)
                    ssb[s].rows(32 * j, 32).tma_load(SB, coords=(0, 0, k * (BK // 64) + j, t.n), stage=s, barrier=full)

    with mma:
        for t in lm.tiles(sched):
            d = lm.step(two)
            lm.wait(acc_empty, stage=d)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                for j in lm.static_range(BK // 64):
                    lm.tmem_copy(ta.cols(16 * j, 16), ssa[s].rows(32 * j, 32))
                    lm.tmem_copy(tb.cols(16 * j, 16), ssb[s].rows(32 * j, 32))
                for j in lm.static_range(BK // 64):
                    of_a = lm.scales(ta.cols(16 * j, 16), block=16, dtype=lm.e4m3, layout="tmem_128x4")
                    of_b = lm.scales(tb.cols(16 * j, 16), block=16, dtype=lm.e4m3, layout="tmem_128x4")
                    lm.mma(accs.cols(128 * d.index, 128), sa[s].cols(64 * j, 64), sb[s].cols(64 * j, 64), init=(k == 0 and j == 0),
                           scale_a=of_a, scale_b=of_b, ctas=2)
                lm.commit(empty, stage=s)
            lm.commit(acc_full, stage=d)

    with epi:
        for t in lm.tiles(sched):
            d = lm.step(two)
            lm.wait(acc_full, stage=d)
            c = lm.tmem_load(accs.cols(128 * d.index, 128))
            lm.tmem_wait("ld")
            lm.arrive(acc_empty, stage=d)
            lm.store_wait(pending=0)
            lm.sync(own)
            sc.store(lm.cast(c * alpha, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            sc.tma_store(C, coords=(t.n * 128, t.m * 128))
        lm.store_wait(pending=0)

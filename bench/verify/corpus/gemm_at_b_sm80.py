@cake.schedule(target=("sm_80", "sm_89"))
def gemm_at_b_sm80(lm, A: LM.gmem3d[LM.f16, "L", "K", "M"], B: LM.gmem3d[LM.f16, "L", "K", "N"], C: LM.gmem3d[LM.f16, "L", "M", "N"], L: LM.i32, M: LM.i32, N: LM.i32, K: LM.i32, *, BM=64, BN=64, BK=32, STAGES=3):
    """Batched C = A^T B: neither operand has K contiguous, both are turned round by the matrix loads; the result leaves in whole lines through shared memory."""
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(M % 8 == 0 and N % 8 == 0)
    lm.assume(K >= 1)
    pool = lm.smem(max(STAGES * BK * (BM + BN) * 2, BM * (BN + 8) * 2))
    sa = pool.view(offset=0, shape=(BK, BM), dtype=lm.f16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=STAGES * BK * BM * 2, shape=(BK, BN), dtype=lm.f16, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=0, shape=(BM, BN + 8), dtype=lm.f16)
    all_ = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(all_)
    ring = lm.pipeline(stages=STAGES)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN), L), names=("m", "n", "l"))
    steps = lm.cdiv(K, BK)
    with all_:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0)
            for i in lm.static_range(STAGES - 1):
                sa.cp_async(A, coords=(t.m * BM, i * BK, t.l), stage=i)
                sb.cp_async(B, coords=(t.n * BN, i * BK, t.l), stage=i)
                lm.cp_commit()
            for k in lm.range(steps):
                lm.cp_wait(STAGES - 2)
                lm.sync(cta)
                s = lm.step(ring)
                ahead = k + STAGES - 1
                sa.cp_async(A, coords=(t.m * BM, ahead * BK, t.l), stage=s.prev())
                sb.cp_async(B, coords=(t.n * BN, ahead * BK, t.l), stage=s.prev())
                lm.cp_commit()
                for h in lm.static_range(BK // 16):
                    a = sa[s].rows(16 * h, 16).T.ldmatrix(form="a", like=acc)
                    b = sb[s].rows(16 * h, 16).T.ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
            lm.cp_wait(0)
            lm.sync(cta)
            sc.cols(0, BN).store(lm.cast(acc, lm.f16))
            lm.sync(cta)
            lm.store(C, sc.cols(0, BN).load(form="vec"), coords=(t.n * BN, t.m * BM, t.l), clip=True)

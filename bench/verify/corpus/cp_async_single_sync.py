"""Multistage GEMM with one meeting a k tile, B given as (K, N) and transposed by the matrix loads."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_120a"))
def cp_async_single_sync(lm, A: LM.gmem2d[LM.f16, "M", "K"], B: LM.gmem2d[LM.f16, "K", "N"], C: LM.gmem2d[LM.f32, "M", "N"],
                         M: LM.i32, N: LM.i32, K: LM.i32, *, BM=64, BN=64, BK=32, STAGES=3):
    """C = A B in f32, written from the accumulators; four warps of 32 x 32."""
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes = STAGES * BM * BK * 2
    pool = lm.smem(a_bytes + STAGES * BK * BN * 2)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.f16, stage=STAGES, swizzle="64b")
    sb = pool.view(offset=a_bytes, shape=(BK, BN), dtype=lm.f16, stage=STAGES, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=STAGES)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="m", swizzle=4)
    kt = lm.cdiv(K, BK)

    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
            for k in lm.static_range(STAGES - 1):
                s = lm.step(ring)
                if k < kt:
                    sa.cp_async(A, coords=(k * BK, t.m * BM), stage=s)
                    sb.cp_async(B, coords=(t.n * BN, k * BK), stage=s)
                lm.cp_commit()
            for k in lm.range(kt):
                lm.cp_wait(pending=STAGES - 2)
                lm.sync(cta)
                w = lm.step(ring)
                r = w.prev(STAGES - 1)
                for kk in lm.static_range(BK // 16):
                    a = sa[r].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sb[r].rows(16 * kk, 16).T.ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                if k + STAGES - 1 < kt:
                    sa.cp_async(A, coords=((k + STAGES - 1) * BK, t.m * BM), stage=w)
                    sb.cp_async(B, coords=(t.n * BN, (k + STAGES - 1) * BK), stage=w)
                lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.store(C, acc, coords=(t.n * BN, t.m * BM), clip=True)

"""Multistage GEMM of tf32 by the CTA's warps: both operands K-major, read from shared memory by matrix loads."""


@cake.schedule(target=("sm_90a", "sm_80"))
def cp_async_tf32(lm, A: LM.gmem2d[LM.tf32, "M", "K"], B: LM.gmem2d[LM.tf32, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"],
                  M: LM.i32, N: LM.i32, K: LM.i32, *, BM=64, BN=64, BK=32, STAGES=3):
    """C = A B' in f32 by tf32 products; four warps of 32 x 32."""
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(K > 0 and K % 4 == 0 and N % 4 == 0)
    a_bytes = STAGES * BM * BK * 4
    pool = lm.smem(a_bytes + STAGES * BN * BK * 4)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.tf32, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.tf32, stage=STAGES, swizzle="128b")
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
                    sb.cp_async(B, coords=(k * BK, t.n * BN), stage=s)
                lm.cp_commit()
            for k in lm.range(kt):
                lm.cp_wait(pending=STAGES - 2)
                lm.sync(cta)
                w = lm.step(ring)
                r = w.prev(STAGES - 1)
                for kk in lm.static_range(BK // 8):
                    a = sa[r].cols(8 * kk, 8).ldmatrix(form="a", like=acc)
                    b = sb[r].cols(8 * kk, 8).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                if k + STAGES - 1 < kt:
                    sa.cp_async(A, coords=((k + STAGES - 1) * BK, t.m * BM), stage=w)
                    sb.cp_async(B, coords=((k + STAGES - 1) * BK, t.n * BN), stage=w)
                lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.store(C, acc, coords=(t.n * BN, t.m * BM), clip=True)

"""INT8 GEMM with one scale a token and one a channel (vLLM's scaled_mm), cp.async in three stages, one barrier a step."""


@cake.schedule(target=("sm_80", "sm_89"))
def gemm_w8a8_ada(lm, A: LM.gmem2d[LM.i8, "M", "K"], B: LM.gmem2d[LM.i8, "N", "K"], SA: LM.gmem1d[LM.f32, "M"], SB: LM.gmem1d[LM.f32, "N"], C: LM.gmem2d[LM.bf16, "M", "N"],
                  M: LM.i32, N: LM.i32, K: LM.i32, *, BM=64, BN=128, BK=64, STAGES=3):
    """INT8 GEMM with one scale a token and one a channel (vLLM's scaled_mm), cp.async in three stages, one barrier a step."""
    lm.launch(grid="tiles")
    lm.assume(K % 16 == 0 and K > 0)
    pool = lm.smem(STAGES * (BM + BN) * BK)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.i8, stage=STAGES, swizzle="64b")
    sb = pool.view(offset=STAGES * BM * BK, shape=(BN, BK), dtype=lm.i8, stage=STAGES, swizzle="64b")
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=STAGES)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)))
    kt = lm.cdiv(K, BK)
    with work:
        for t in lm.tiles(sched):
            for i in lm.static_range(STAGES - 1):
                sa.cp_async(A, coords=(i * BK, t.m * BM), stage=i)
                sb.cp_async(B, coords=(i * BK, t.n * BN), stage=i)
                lm.cp_commit()
            acc = lm.frag(shape=(BM, BN), dtype=lm.i32, form="acc", warps=(2, 2), init=0)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.cp_wait(pending=STAGES - 2)
                lm.sync(meet)
                sa.cp_async(A, coords=((k + STAGES - 1) * BK, t.m * BM), stage=s.prev())
                sb.cp_async(B, coords=((k + STAGES - 1) * BK, t.n * BN), stage=s.prev())
                lm.cp_commit()
                for j in lm.static_range(BK // 32):
                    a = sa[s].cols(32 * j, 32).ldmatrix(form="a", like=acc)
                    b = sb[s].cols(32 * j, 32).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
            lm.cp_wait(pending=0)
            rs = lm.load(SA, coords=(t.m * BM,), shape=(BM,), form="rowvec", like=acc, clip=True)
            cs = lm.load(SB, coords=(t.n * BN,), shape=(BN,), form="colvec", like=acc, clip=True)
            lm.store(C, lm.cast(lm.cast(acc, lm.f32) * rs * cs, lm.bf16), coords=(t.n * BN, t.m * BM), clip=True)

"""FP8 GEMM for Ada with a scale a row and a column: two slots, the copies of the next one are started behind the products of this one."""


@cake.schedule(target=("sm_89", "sm_120a", "sm_121a"))
def gemm_fp8_ada(lm, A: LM.gmem2d[LM.e4m3, "M", "K"], B: LM.gmem2d[LM.e4m3, "N", "K"], SA: LM.gmem1d[LM.f32, "M"], SB: LM.gmem1d[LM.f32, "N"],
                 C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, BM=64, BN=64, BK=64):
    """C = (A B^T) SA SB^T."""
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(K % 16 == 0 and N % 8 == 0)
    pool = lm.smem(2 * (BM + BN) * BK)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.e4m3, stage=2, swizzle="64b")
    sb = pool.view(offset=2 * BM * BK, shape=(BN, BK), dtype=lm.e4m3, stage=2, swizzle="64b")
    work = lm.role(warps=range(0, 8))
    ring = lm.pipeline(stages=2)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="n", swizzle=4)
    kt = lm.cdiv(K, BK)

    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 4), init=0.0)
            now = lm.step(ring)
            sa.cp_async(A, coords=(0, t.m * BM), stage=now)
            sb.cp_async(B, coords=(0, t.n * BN), stage=now)
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(cta)
            for k in lm.range(1, kt):
                nxt = lm.step(ring)
                sa.cp_async(A, coords=(k * BK, t.m * BM), stage=nxt)
                sb.cp_async(B, coords=(k * BK, t.n * BN), stage=nxt)
                lm.cp_commit()
                for kk in lm.static_range(BK // 32):
                    lm.mma(acc, sa[nxt.prev()].cols(32 * kk, 32).ldmatrix(form="a", like=acc), sb[nxt.prev()].cols(32 * kk, 32).ldmatrix(form="b", like=acc))
                lm.cp_wait(pending=0)
                lm.sync(cta)
            last = lm.at(ring)
            for kk in lm.static_range(BK // 32):
                lm.mma(acc, sa[last].cols(32 * kk, 32).ldmatrix(form="a", like=acc), sb[last].cols(32 * kk, 32).ldmatrix(form="b", like=acc))
            rs = lm.load(SA, coords=(t.m * BM,), shape=(BM,), form="rowvec", like=acc, clip=True)
            cs = lm.load(SB, coords=(t.n * BN,), shape=(BN,), form="colvec", like=acc, clip=True)
            lm.store(C, lm.cast(acc * rs * cs, lm.bf16), coords=(t.n * BN, t.m * BM), clip=True)

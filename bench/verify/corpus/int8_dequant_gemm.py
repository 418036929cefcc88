@cake.schedule(target="sm_80")
def int8_dequant_gemm(lm, A: LM.gmem2d[LM.i8, "M", "K"], B: LM.gmem2d[LM.i8, "N", "K"], SA: LM.gmem1d[LM.f32, "M"], SB: LM.gmem1d[LM.f32, "N"], BIAS: LM.gmem1d[LM.f32, "N"],
                      C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, BM=128, BN=64, BK=64, STAGES=3):
    """SmoothQuant's product: int8 by int8 in i32, a scale a token and one a channel at the end."""
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(K % 16 == 0 and N % 8 == 0)
    a_bytes = STAGES * BM * BK
    pool = lm.smem(a_bytes + STAGES * BN * BK)
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.i8, stage=STAGES, swizzle="64b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.i8, stage=STAGES, swizzle="64b")
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    ring = lm.pipeline(stages=STAGES)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="m", swizzle=4)
    kt = lm.cdiv(K, BK)

    with work:
        acc = lm.frag(shape=(BM, BN), dtype=lm.i32, form="acc", warps=(2, 2), init=0)
        for t in lm.tiles(sched):
            for i in lm.static_range(STAGES - 1):
                s = lm.step(ring)
                smem_a.cp_async(A, coords=(i * BK, t.m * BM), stage=s)
                smem_b.cp_async(B, coords=(i * BK, t.n * BN), stage=s)
                lm.cp_commit()
            for k in lm.range(kt):
                lm.cp_wait(pending=STAGES - 2)
                lm.sync(meet)
                s = lm.step(ring)
                smem_a.cp_async(A, coords=((k + STAGES - 1) * BK, t.m * BM), stage=s)
                smem_b.cp_async(B, coords=((k + STAGES - 1) * BK, t.n * BN), stage=s)
                lm.cp_commit()
                c = s.prev(STAGES - 1)
                lm.mma(acc, smem_a[c].ldmatrix(form="a", like=acc), smem_b[c].ldmatrix(form="b", like=acc))
            lm.cp_wait(pending=0)
            col, row = t.n * BN, t.m * BM
            sa = lm.load(SA, coords=(row,), shape=(BM,), form="rowvec", like=acc, clip=True)
            sb = lm.load(SB, coords=(col,), shape=(BN,), form="colvec", like=acc, clip=True)
            bias = lm.load(BIAS, coords=(col,), shape=(BN,), form="colvec", like=acc, clip=True)
            lm.store(C, lm.cast(lm.cast(acc, lm.f32) * sa * sb + bias, lm.bf16), coords=(col, row), clip=True)

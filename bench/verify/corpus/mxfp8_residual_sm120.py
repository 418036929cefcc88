@cake.schedule(target=("sm_120a", "sm_121a"))
def mxfp8_residual_sm120(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.gmem2d[LM.u32, "KW", "M"].const, SB: LM.gmem2d[LM.u32, "KW", "N"].const,
                         R: LM.gmem2d[LM.bf16, "M", "N"], C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KW: LM.i32, *, BM=128, BN=64, BK=128, STAGES=3):
    """C = R + A B^T with ue8m0 scales of 32 elements, four to a word; one warp copies, eight multiply from registers."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 128 == 0 and KW == K // 128 and N % 8 == 0 and M % 4 == 0)
    pool = lm.smem(STAGES * (BM + BN) * BK)
    at = pool.view(offset=0, shape=(BM, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    bt = pool.view(offset=STAGES * BM * BK, shape=(BN, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    multiply = lm.role(warps=range(0, 8))
    copy = lm.role(warps=range(8, 9))
    belt = lm.pipeline(stages=STAGES)
    loaded = lm.barrier(pipeline=belt, prod=[copy], cons=[multiply], arrive="tx")
    spent = lm.barrier(pipeline=belt, prod=[multiply], cons=[copy], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="n")

    with copy:
        for t in lm.tiles(sched):
            for k in lm.range(K // BK):
                s = lm.step(belt)
                lm.wait(spent, stage=s)
                at.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=loaded)
                bt.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=loaded)

    with multiply:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(4, 2), init=0.0)
            for k in lm.range(K // BK):
                s = lm.step(belt)
                lm.wait(loaded, stage=s)
                for q in lm.static_range(4):
                    a = at[s].cols(32 * q, 32).ldmatrix(form="a", like=acc)
                    b = bt[s].cols(32 * q, 32).ldmatrix(form="b", like=acc)
                    wa = lm.load(SA, coords=(t.m * BM, k), shape=(BM,), form="rowvec", like=a, clip=True)
                    wb = lm.load(SB, coords=(t.n * BN, k), shape=(BN,), form="rowvec", like=b, clip=True)
                    lm.mma(acc, a, b, scale_a=lm.scales(wa, block=32, dtype=lm.ue8m0, layout="frag_row", first=q), scale_b=lm.scales(wb, block=32, dtype=lm.ue8m0, layout="frag_row", first=q))
                lm.arrive(spent, stage=s)
            r = lm.load(R, coords=(t.n * BN, t.m * BM), shape=(BM, BN), form="acc", like=acc, clip=True)
            lm.store(C, lm.cast(acc + lm.cast(r, lm.f32), lm.bf16), coords=(t.n * BN, t.m * BM), clip=True)

"""GEMM of nvfp4 operands for consumer Blackwell, one role: cp.async fills a ring, warps multiply packed e2m1 by block-scaled mma.sync."""


@cake.schedule(target=("sm_120a", "sm_121a"))
def nvf4_mma_sync_gemm(lm, A: LM.gmem2d[LM.e2m1, "M", "K"], B: LM.gmem2d[LM.e2m1, "N", "K"], SA: LM.gmem2d[LM.u32, "KW", "M"].const, SB: LM.gmem2d[LM.u32, "KW", "N"].const,
                       C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KW: LM.i32, *, BM=64, BN=64, STAGES=3):
    """C = (A SA) (B SB)^T; one instruction takes 64 elements of K and all four e4m3 scales of a word, which come straight from global memory."""
    lm.launch(grid="tiles", ctas_per_sm=1)
    lm.assume(K % 128 == 0 and M % 4 == 0 and N % 4 == 0)
    lm.assume(KW == K // 64)
    a_bytes, b_bytes = STAGES * BM * 64, STAGES * BN * 64
    pool = lm.smem(a_bytes + b_bytes)
    sa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e2m1, stage=STAGES, swizzle="64b")
    sb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e2m1, stage=STAGES, swizzle="64b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=STAGES)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)))
    kt = lm.cdiv(K, 128)

    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
            columns = lm.frag(shape=(BN, 64), dtype=lm.e2m1, form="b", like=acc)
            for k in lm.static_range(STAGES - 1):
                s = lm.step(ring)
                if k < kt:
                    sa.cp_async(A, coords=(k * 128, t.m * BM), stage=s)
                    sb.cp_async(B, coords=(k * 128, t.n * BN), stage=s)
                lm.cp_commit()
            for k in lm.range(kt):
                lm.cp_wait(pending=STAGES - 2)
                lm.sync(cta)
                w = lm.step(ring)
                if k + STAGES - 1 < kt:
                    sa.cp_async(A, coords=((k + STAGES - 1) * 128, t.m * BM), stage=w)
                    sb.cp_async(B, coords=((k + STAGES - 1) * 128, t.n * BN), stage=w)
                lm.cp_commit()
                r = w.prev(STAGES - 1)
                for j in lm.static_range(2):
                    a = sa[r].cols(64 * j, 64).ldmatrix(form="a", like=acc)
                    b = sb[r].cols(64 * j, 64).ldmatrix(form="b", like=acc)
                    wa = lm.load(SA, coords=(t.m * BM, k * 2 + j), shape=(BM,), form="rowvec", like=acc, clip=True)
                    wb = lm.load(SB, coords=(t.n * BN, k * 2 + j), shape=(BN,), form="rowvec", like=columns, clip=True)
                    lm.mma(acc, a, b, scale_a=lm.scales(wa, block=16, dtype=lm.e4m3, layout="frag_row"), scale_b=lm.scales(wb, block=16, dtype=lm.e4m3, layout="frag_row"))
            lm.cp_wait(pending=0)
            lm.store(C, acc, coords=(t.n * BN, t.m * BM), clip=True)

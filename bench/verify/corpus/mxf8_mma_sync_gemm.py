"""GEMM of mxfp8 operands for consumer Blackwell: warps multiply e4m3 by block-scaled mma.sync, four scales of a row in a word."""


@cake.schedule(target=("sm_120a", "sm_121a"))
def mxf8_mma_sync_gemm(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.tma2d[LM.u32, "KW", "M"].const, SB: LM.tma2d[LM.u32, "KW", "N"].const,
                       C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KW: LM.i32, *, BM=128, BN=64, STAGES=2):
    """C = (A SA) (B SB)^T; a word holds the ue8m0 scales of 128 elements of K of one row, a slice of 32 takes one of its bytes."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 128 == 0 and M % 4 == 0 and N % 8 == 0)
    lm.assume(KW == K // 128)
    a_bytes, b_bytes = STAGES * BM * 128, STAGES * BN * 128
    pool = lm.smem(a_bytes + b_bytes + BM * BN * 2 + STAGES * (BM + BN) * 4)
    sa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=a_bytes + b_bytes, shape=(BM, BN), dtype=lm.bf16, swizzle="128b")
    ssa = pool.view(offset=a_bytes + b_bytes + BM * BN * 2, shape=(BM,), dtype=lm.u32, stage=STAGES)
    ssb = pool.view(offset=a_bytes + b_bytes + BM * BN * 2 + STAGES * BM * 4, shape=(BN,), dtype=lm.u32, stage=STAGES)
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    own = lm.named_barrier(math)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="m", swizzle=4)
    kt = lm.cdiv(K, 128)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full)
                ssa.tma_load(SA, coords=(t.m * BM, k), stage=s, barrier=full)
                ssb.tma_load(SB, coords=(t.n * BN, k), stage=s, barrier=full)

    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
            columns = lm.frag(shape=(BN, 32), dtype=lm.e4m3, form="b", like=acc)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                wa = ssa[s].load(form="rowvec", like=acc)
                wb = ssb[s].load(form="rowvec", like=columns)
                for j in lm.static_range(4):
                    a = sa[s].cols(32 * j, 32).ldmatrix(form="a", like=acc)
                    b = sb[s].cols(32 * j, 32).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b, scale_a=lm.scales(wa, block=32, dtype=lm.ue8m0, layout="frag_row", first=j),
                           scale_b=lm.scales(wb, block=32, dtype=lm.ue8m0, layout="frag_row", first=j))
                lm.arrive(empty, stage=s)
            lm.store_wait(pending=0)
            lm.sync(own)
            sc.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            sc.tma_store(C, coords=(t.n * BN, t.m * BM))
        lm.store_wait(pending=0)

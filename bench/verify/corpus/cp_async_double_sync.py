"""Double-buffered GEMM with two meetings a k tile, the older scheme: fetch, wait, meet, multiply, meet."""


@cake.schedule(target=("sm_80", "sm_89"))
def cp_async_double_sync(lm, A: LM.gmem2d[LM.bf16, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], BIAS: LM.gmem1d[LM.f32, "N"].const,
                         C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, BM=64, BN=64, BK=32, STAGES=2):
    """C = A B^T + bias; the ring slot of step k is its number modulo STAGES."""
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes = STAGES * BM * BK * 2
    pool = lm.smem(a_bytes + STAGES * BN * BK * 2)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=STAGES)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)))
    kt = lm.cdiv(K, BK)

    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
            bias = lm.load(BIAS, coords=(t.n * BN,), shape=(BN,), form="colvec", like=acc, clip=True)
            s = lm.step(ring)
            sa.cp_async(A, coords=(0, t.m * BM), stage=s)
            sb.cp_async(B, coords=(0, t.n * BN), stage=s)
            lm.cp_commit()
            for k in lm.range(1, kt):
                s = lm.step(ring)
                sa.cp_async(A, coords=(k * BK, t.m * BM), stage=s)
                sb.cp_async(B, coords=(k * BK, t.n * BN), stage=s)
                lm.cp_commit()
                lm.cp_wait(pending=1)
                lm.sync(cta)
                r = s.prev()
                for kk in lm.static_range(BK // 16):
                    a = sa[r].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sb[r].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.sync(cta)
            lm.cp_wait(pending=0)
            lm.sync(cta)
            s = lm.at(ring)
            for kk in lm.static_range(BK // 16):
                a = sa[s].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                b = sb[s].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                lm.mma(acc, a, b)
            lm.store(C, lm.cast(acc + bias, lm.bf16), coords=(t.n * BN, t.m * BM), clip=True)

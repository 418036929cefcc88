"""FP8 GEMM for Ada: m16n8k32 products, scales of the whole operands, output staged for 16-byte stores."""


@cake.schedule(target="sm_89")
def cp_async_fp8(lm, A: LM.gmem2d[LM.e4m3, "M", "K"], B: LM.gmem2d[LM.e4m3, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
                 M: LM.i32, N: LM.i32, K: LM.i32, scale: LM.f32, *, BM=64, BN=64, BK=64, STAGES=4):
    """C = scale * A B^T."""
    lm.launch(grid="tiles", ctas_per_sm=1)
    lm.assume(K > 0)
    lm.assume(K % 16 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * BM * BK, STAGES * BN * BK
    pool = lm.smem(max(a_bytes + b_bytes, BM * BN * 2))
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.e4m3, stage=STAGES, swizzle="64b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.e4m3, stage=STAGES, swizzle="64b")
    sc = pool.view(offset=0, shape=(BM, BN), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=STAGES)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)))
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
                if k + STAGES - 1 < kt:
                    sa.cp_async(A, coords=((k + STAGES - 1) * BK, t.m * BM), stage=w)
                    sb.cp_async(B, coords=((k + STAGES - 1) * BK, t.n * BN), stage=w)
                lm.cp_commit()
                r = w.prev(STAGES - 1)
                for kk in lm.static_range(BK // 32):
                    a = sa[r].cols(32 * kk, 32).ldmatrix(form="a", like=acc)
                    b = sb[r].cols(32 * kk, 32).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
            lm.cp_wait(pending=0)
            lm.sync(cta)
            sc.store(lm.cast(acc * scale, lm.bf16))
            lm.sync(cta)
            v = sc.load(form="vec")
            lm.store(C, v, coords=(t.n * BN, t.m * BM), clip=True)

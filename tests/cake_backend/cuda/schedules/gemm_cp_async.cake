"""Ampere GEMM: cp.async ring, ldmatrix and mma.sync, one CTA barrier a k tile; runs on every later target too."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a"))
def gemm_cp_async(lm, A: LM.gmem2d[LM.bf16, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
                  M: LM.i32, N: LM.i32, K: LM.i32, *, BM=128, BN=128, BK=32, STAGES=4, GROUP=8):
    """C[M,N] = A[M,K] @ B[N,K].T in bf16, f32 accumulation; eight warps share one tile."""
    lm.launch(grid="tiles", ctas_per_sm=1)
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)                                        # 16-byte copies and stores
    a_bytes, b_bytes = STAGES * BM * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(max(a_bytes + b_bytes, BM * BN * 2))
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    smem_c = pool.view(offset=0, shape=(BM, BN), dtype=lm.bf16, swizzle="128b")  # aliases the drained ring
    work = lm.role(warps=range(0, 8))
    cta = lm.named_barrier(work)
    ab = lm.pipeline(stages=STAGES)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="m", swizzle=GROUP)
    kt = lm.cdiv(K, BK)

    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 4), init=0.0)
            for k in lm.static_range(STAGES - 1):                                # fill all slots but one
                s = lm.step(ab)
                if k < kt:
                    smem_a.cp_async(A, coords=(k * BK, t.m * BM), stage=s)
                    smem_b.cp_async(B, coords=(k * BK, t.n * BN), stage=s)
                lm.cp_commit()
            for k in lm.range(kt):
                lm.cp_wait(pending=STAGES - 2)
                lm.sync(cta)                                                     # tile k is everyone's; tile k-1 is no longer read
                w = lm.step(ab)
                if k + STAGES - 1 < kt:
                    smem_a.cp_async(A, coords=((k + STAGES - 1) * BK, t.m * BM), stage=w)
                    smem_b.cp_async(B, coords=((k + STAGES - 1) * BK, t.n * BN), stage=w)
                lm.cp_commit()
                r = w.prev(STAGES - 1)
                for kk in lm.static_range(BK // 16):
                    a = smem_a[r].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = smem_b[r].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
            lm.cp_wait(pending=0)
            lm.sync(cta)                                                         # the ring is drained: smem_c may alias it
            smem_c.store(lm.cast(acc, lm.bf16))
            lm.sync(cta)
            v = smem_c.load(form="vec")
            lm.store(C, v, coords=(t.n * BN, t.m * BM), mask=lm.in_bounds(v, rows=M - t.m * BM, cols=N - t.n * BN))

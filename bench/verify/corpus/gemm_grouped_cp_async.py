"""Grouped GEMM without TMA: groups of rows of any length, tiles of 32 rows, slots filled two ahead by all threads."""


@cake.schedule(target=("sm_80", "sm_89"))
def gemm_grouped_cp_async(lm, A: LM.gmem2d[LM.f16, "T", "K"], W: LM.gmem3d[LM.f16, "G", "N", "K"], C: LM.gmem2d[LM.f16, "T", "N"], OFFS: LM.gmem1d[LM.i32, "G1"].const,
                          T: LM.i32, G: LM.i32, G1: LM.i32, N: LM.i32, K: LM.i32, *, BM=32, BN=64, BK=32, STAGES=3):
    """C[r] = A[r] W[g]^T for the rows r of group g."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(K > 0 and G > 0)
    lm.assume(G1 == G + 1 and K % 8 == 0 and N % 8 == 0)
    lm.assume_values(OFFS, 0, T + 1, sorted=True)
    a_bytes, w_bytes = STAGES * BM * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + w_bytes)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.f16, stage=STAGES, swizzle="64b")
    sw = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.f16, stage=STAGES, swizzle="64b")
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=STAGES)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grouped", tiles=(lm.cdiv(N, BN),), offsets=OFFS, block=BM)
    kt = lm.cdiv(K, BK)

    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
            for p in lm.static_range(STAGES - 1):
                s = lm.step(ring)
                sa.cp_async(A, coords=(p * BK, t.row0), stage=s)
                sw.cp_async(W, coords=(p * BK, t.n * BN, t.group), stage=s)
                lm.cp_commit()
            for k in lm.range(kt):
                lm.cp_wait(pending=STAGES - 2)
                lm.sync(cta)
                s = lm.step(ring)
                sa.cp_async(A, coords=((k + STAGES - 1) * BK, t.row0), stage=s)
                sw.cp_async(W, coords=((k + STAGES - 1) * BK, t.n * BN, t.group), stage=s)
                lm.cp_commit()
                now = s.prev(STAGES - 1)
                for kk in lm.static_range(BK // 16):
                    lm.mma(acc, sa[now].cols(16 * kk, 16).ldmatrix(form="a", like=acc), sw[now].cols(16 * kk, 16).ldmatrix(form="b", like=acc))
            lm.cp_wait(pending=0)
            lm.sync(cta)
            lm.store(C, lm.cast(acc, lm.f16), coords=(t.n * BN, t.row0), mask=lm.in_bounds(acc, t.rows, N - t.n * BN))

"""Hopper FP8 GEMM: each block of 128 along K is a product of its own, promoted with its scales, which come with it, into f32 sums."""


@cake.schedule(target="sm_90a")
def gemm_fp8(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
             C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
             *, MEMBERS=2, BN=128, STAGES=5, CW=64, CSTAGES=2, GROUP=8, CLUSTER=1, EARLY=False, REGS=232, LOAD_REGS=40):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; 64 rows of each tile per math member."""
    lm.launch(grid="persistent", cluster=(CLUSTER, 1))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and N % 8 == 0 and MP % 4 == 0)

    BM = 64 * MEMBERS
    ONE = 128 % BN == 0
    a_bytes, b_bytes, c_bytes = STAGES * BM * 128, STAGES * BN * 128, CSTAGES * BM * CW * 2
    pool = lm.smem(a_bytes + b_bytes + c_bytes + STAGES * BM * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, CW), dtype=lm.bf16, stage=CSTAGES,
                       swizzle="128b" if CW % 64 == 0 else "64b" if CW % 32 == 0 else "32b")
    scale_a = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    cring = lm.pipeline(stages=CSTAGES)
    epi = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(CLUSTER, 1), raster="m", swizzle=GROUP)

    with load:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full)
                qb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full, multicast="m" if CLUSTER > 1 else None)
                scale_a.tma_load(SA, coords=(t.m * BM, k), stage=s, barrier=full)

    with math:
        if EARLY:
            lm.pdl_launch()
        lm.pdl_wait()
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            row = t.n * BN // 128 * KB                                           # where the scales of the tile's first columns lie
            next_row = lm.min(t.n * BN // 128 + 1, NB - 1) * KB                  # .. and of those it has in the next block
            ahead = lm.ld(SB, row)
            next_ahead = lm.ld(SB, next_row)
            for k in lm.range(KB):
                at = lm.min(k + 1, KB - 1)
                s = lm.step(ring)
                sb = ahead
                ahead = lm.ld(SB, row + at)                                      # a block ahead: it may come from far away
                if not ONE:
                    next_sb = next_ahead
                    next_ahead = lm.ld(SB, next_row + at)
                lm.wait(full, stage=s)
                sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=part)
                lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                if ONE:
                    acc = acc + part * (sa * sb)
                else:
                    acc = acc + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, sa * sb, sa * next_sb)
            for j in lm.static_range(BN // CW):
                c = lm.step(cring)
                lm.store_wait(pending=CSTAGES - 1)                               # slot c was read by an earlier store
                lm.sync(epi)
                mine = smem_c[c].rows(64 * math.index, 64)
                mine.store(lm.cast(acc.cols(CW * j, CW), lm.bf16))
                lm.fence_proxy()
                lm.sync(epi)
                mine.tma_store(C, coords=(t.n * BN + CW * j, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

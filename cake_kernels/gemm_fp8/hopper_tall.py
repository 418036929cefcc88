"""Hopper FP8 GEMM in tall tiles: a member has two products of 64 rows a block, so that one is promoted while the other member's run."""


@cake.schedule(target="sm_90a")
def gemm_fp8_tall(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
             C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
             *, MEMBERS=2, BN=128, STAGES=3, CW=64, CSTAGES=4, GROUP=8, CLUSTER=1, UNROLL=4, EARLY=False, REGS=232, LOAD_REGS=40):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; 128 rows of each tile per math member, K in multiples of 512."""
    lm.launch(grid="persistent", cluster=(1, CLUSTER))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB % 4 == 0 and N % 8 == 0 and MP % 4 == 0)  # the scales of B come in fours

    BM = 128 * MEMBERS
    ONE = 128 % BN == 0                                                          # a tile lies in one block of scales
    a_bytes, b_bytes, c_bytes = STAGES * BM * 128, STAGES * BN * 128, CSTAGES * 64 * MEMBERS * CW * 2
    pool = lm.smem(a_bytes + b_bytes + c_bytes + STAGES * (BM * 4 + 32))
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(64 * MEMBERS, CW), dtype=lm.bf16, stage=CSTAGES, swizzle="128b" if CW % 64 == 0 else "64b" if CW % 32 == 0 else "32b")
    scale_a = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)
    scale_b = pool.view(offset=a_bytes + b_bytes + c_bytes + STAGES * BM * 4, shape=(4,), dtype=lm.f32, stage=STAGES)
    if not ONE:
        scale_next = pool.view(offset=a_bytes + b_bytes + c_bytes + STAGES * (BM * 4 + 16), shape=(4,), dtype=lm.f32, stage=STAGES)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    cring = lm.pipeline(stages=CSTAGES)
    epi = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(1, CLUSTER), raster="m", swizzle=GROUP)

    with load:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full, multicast="n" if CLUSTER > 1 else None)
                qb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full)
                scale_a.tma_load(SA, coords=(t.m * BM, k), stage=s, barrier=full)
                scale_b.bulk_load(SB, offset=lm.min(t.n * BN // 128, NB - 1) * KB + k // 4 * 4, n=4, stage=s, barrier=full)
                if not ONE:
                    scale_next.bulk_load(SB, offset=lm.min(t.n * BN // 128 + 1, NB - 1) * KB + k // 4 * 4, n=4, stage=s, barrier=full)

    with math:
        if EARLY:
            lm.pdl_launch()
        lm.pdl_wait()
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            upper = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            lower = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(KB // UNROLL):
                for u in lm.static_range(UNROLL):
                    s = lm.step(ring)
                    lm.wait(full, stage=s)
                    four = u if UNROLL == 4 else (k * UNROLL + u) % 4
                    sb = scale_b[s].ld(four)
                    if not ONE:
                        next_sb = scale_next[s].ld(four)
                    upper_sa = scale_a[s].cols(128 * math.index, 64).load(form="rowvec", like=part)
                    lower_sa = scale_a[s].cols(128 * math.index + 64, 64).load(form="rowvec", like=part)
                    lm.mma(part, qa[s].rows(128 * math.index, 64), qb[s], init=True)
                    lm.mma_wait(pending=0)
                    if ONE:
                        upper = upper + part * (upper_sa * sb)
                    else:
                        upper = upper + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, upper_sa * sb, upper_sa * next_sb)
                    lm.mma(part, qa[s].rows(128 * math.index + 64, 64), qb[s], init=True)
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                    if ONE:
                        lower = lower + part * (lower_sa * sb)
                    else:
                        lower = lower + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, lower_sa * sb, lower_sa * next_sb)
            for h in lm.static_range(2):
                for j in lm.static_range(BN // CW):
                    c = lm.step(cring)
                    lm.store_wait(pending=CSTAGES - 1)                           # slot c was read by an earlier store
                    lm.sync(epi)
                    mine = smem_c[c].rows(64 * math.index, 64)
                    if h == 0:
                        mine.store(lm.cast(upper.cols(CW * j, CW), lm.bf16))
                    else:
                        mine.store(lm.cast(lower.cols(CW * j, CW), lm.bf16))
                    lm.fence_proxy()
                    lm.sync(epi)
                    mine.tma_store(C, coords=(t.n * BN + CW * j, t.m * BM + 128 * math.index + 64 * h))
        lm.store_wait(pending=0)

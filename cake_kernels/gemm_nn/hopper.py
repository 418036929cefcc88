"""Hopper GEMM on a B with N contiguous: the same ring, B read through its transpose by the tensor core."""


@cake.schedule(target="sm_90a")
def gemm_nn(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "K", "N"], C: LM.tma2d[LM.bf16, "M", "N"],
            M: LM.i32, N: LM.i32, K: LM.i32, *, MEMBERS=2, BN=256, BK=64, STAGES=4, CW=64, CSTAGES=2, GROUP=8, DEPTH=1,
            PANEL=64, CLUSTER=1, EARLY=False):
    """C[M,N] = A[M,K] @ B[K,N] in bf16, f32 accumulation; 64 rows of each tile per math member.

    A slot holds whole PANELs of columns of B, so a BN that is no multiple of 64 is rounded up in shared memory, or takes narrower panels.
    EARLY lets the next launch start at the beginning of this one; in a CLUSTER of row tiles each CTA fetches its share of B for all.
    """
    lm.launch(grid="persistent", cluster=(CLUSTER, 1))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)                                        # row strides are multiples of 16 bytes

    BM = 64 * MEMBERS
    BW = lm.cdiv(BN, PANEL) * PANEL
    a_bytes, b_bytes = STAGES * BM * BK * 2, STAGES * BW * BK * 2
    pool = lm.smem(a_bytes + b_bytes + CSTAGES * BM * CW * 2)
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BK, BW), dtype=lm.bf16, stage=STAGES,
                       swizzle="128b" if PANEL == 64 else "64b" if PANEL == 32 else "32b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, CW), dtype=lm.bf16, stage=CSTAGES,
                       swizzle="128b" if CW % 64 == 0 else "64b" if CW % 32 == 0 else "32b")

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=232, members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=40)

    ab = lm.pipeline(stages=STAGES)
    ab_full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
    ab_empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="member", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    cring = lm.pipeline(stages=CSTAGES)
    epi = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(CLUSTER, 1), raster="m", swizzle=GROUP)
    kt = lm.cdiv(K, BK)

    with load:
        if EARLY:
            lm.pdl_wait()
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(ab_empty, stage=s)
                smem_a.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=ab_full)
                smem_b.tma_load(B, coords=(t.n * BN, k * BK), stage=s, barrier=ab_full, multicast="m" if CLUSTER > 1 else None)

    with math:
        if EARLY:
            lm.pdl_launch()                                                      # the next launch sets up while this one ends
            lm.pdl_wait()
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(ab_full, stage=s)
                lm.mma(acc, smem_a[s].rows(64 * math.index, 64), smem_b[s].cols(0, BN).T, init=(k == 0))
                lm.mma_wait(pending=DEPTH)                                       # the k tile before has been read
                if DEPTH == 0:
                    lm.arrive(ab_empty, stage=s)
                elif k > 0:
                    lm.arrive(ab_empty, stage=s.prev())
            lm.mma_wait(pending=0)
            if DEPTH > 0:
                lm.arrive(ab_empty, stage=lm.at(ab))
            for j in lm.static_range(BN // CW):
                c = lm.step(cring)
                lm.store_wait(pending=CSTAGES - 1)                               # slot c was read by an earlier store
                lm.sync(epi)
                half = smem_c[c].rows(64 * math.index, 64)
                half.store(lm.cast(acc.cols(CW * j, CW), lm.bf16))
                lm.fence_proxy()
                lm.sync(epi)
                half.tma_store(C, coords=(t.n * BN + CW * j, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

"""Hopper FP8 GEMM, tiles 192 columns wide: one product of 192 columns, promoted in three slices of 64, each inside one block of scales."""


@cake.schedule(target="sm_90a")
def gemm_fp8_wide_ring(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.tma1d[LM.f32].const,
             C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
             *, MEMBERS=2, STAGES=4, CSTAGES=2, GROUP=8, CLUSTER=2, TURNS=False, REGS=232, LOAD_REGS=40):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; 64 rows of each tile per math member."""
    lm.launch(grid="persistent", cluster=(CLUSTER, 1))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and N % 8 == 0 and MP % 4 == 0)

    BM, BN, CW = 64 * MEMBERS, 192, 64
    a_bytes, b_bytes, c_bytes = STAGES * BM * 128, STAGES * BN * 128, CSTAGES * BM * CW * 2
    pool = lm.smem(a_bytes + b_bytes + c_bytes + STAGES * BM * 4 + STAGES * 256)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, CW), dtype=lm.bf16, stage=CSTAGES, swizzle="128b")
    scale = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)
    block = pool.view(offset=a_bytes + b_bytes + c_bytes + STAGES * BM * 4, shape=(64,), dtype=lm.f32, stage=STAGES)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    cring = lm.pipeline(stages=CSTAGES)
    epi = lm.named_barrier(math, per_member=True)
    if TURNS:
        turn = lm.turns(math)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(CLUSTER, 1), raster="m", swizzle=GROUP)

    with load:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            at = t.n * 3 // 2 * KB                                               # 192 columns are one block and a half
            for k in lm.range(KB):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full)
                qb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full, multicast="m" if CLUSTER > 1 else None)
                scale.tma_load(SA, coords=(t.m * BM, k), stage=s, barrier=full)
                block.cols(0, 4).tma_load(SB, coords=(at + k,), stage=s, barrier=full)
                block.cols(32, 4).tma_load(SB, coords=(at + KB + k,), stage=s, barrier=full)

    with math:
        lm.pdl_wait()
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            left = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            middle = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            right = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(KB):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                sa = scale[s].cols(64 * math.index, 64).load(form="rowvec", like=part)
                sb0 = block[s].cols(0, 4).ld(0)
                sb2 = block[s].cols(32, 4).ld(0)
                sb1 = lm.where(t.n % 2 == 0, sb0, sb2)
                if TURNS:
                    lm.wait(turn)
                lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s], init=True)
                if TURNS:
                    lm.arrive(turn)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                left = left + part.cols(0, 64) * (sa * sb0)
                middle = middle + part.cols(64, 64) * (sa * sb1)
                right = right + part.cols(128, 64) * (sa * sb2)
            for j in lm.static_range(3):
                c = lm.step(cring)
                lm.store_wait(pending=CSTAGES - 1)                               # slot c was read by an earlier store
                lm.sync(epi)
                mine = smem_c[c].rows(64 * math.index, 64)
                if j == 0:
                    mine.store(lm.cast(left, lm.bf16))
                elif j == 1:
                    mine.store(lm.cast(middle, lm.bf16))
                else:
                    mine.store(lm.cast(right, lm.bf16))
                lm.fence_proxy()
                lm.sync(epi)
                mine.tma_store(C, coords=(t.n * BN + CW * j, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

"""Hopper FP8 GEMM, tiles 256 columns wide: a member multiplies its 64 rows with half of the columns at a time, and promotes them under the other member's products."""


@cake.schedule(target="sm_90a")
def gemm_fp8_halves(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                    C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                    *, MEMBERS=2, STAGES=3, GROUP=8, CLUSTER=1, LEAD=0, UNROLL=1, KMAX=256, REGS=232, LOAD_REGS=40):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; 64 rows of each tile per math member."""
    lm.launch(grid="persistent", cluster=(CLUSTER, 1))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX and KB % UNROLL == 0 and N % 8 == 0 and MP % 4 == 0)

    BM, BN = 64 * MEMBERS, 256
    a_bytes, b_bytes, c_bytes, s_bytes = STAGES * BM * 128, STAGES * BN * 128, BM * BN * 2, STAGES * BM * 4
    pool = lm.smem(a_bytes + b_bytes + c_bytes + s_bytes + 2 * MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, BN), dtype=lm.bf16, swizzle="128b")
    scale_a = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)
    scale_left = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    scale_right = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    own = lm.named_barrier(math, per_member=True)
    if LEAD > 0:
        turn = lm.turns(math)
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
        lm.pdl_launch()                                                          # the next kernel sets up meanwhile
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            left = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
            right = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
            found = lm.load(SB, coords=(t.n * 2 * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            found_right = lm.load(SB, coords=(lm.min(t.n * 2 + 1, NB - 1) * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_left.cols(KMAX * math.index, KMAX).store(found)                # a member's own copy: it meets only itself for it
            scale_right.cols(KMAX * math.index, KMAX).store(found_right)
            lm.sync(own)
            for k in lm.range(KB // UNROLL):
                for u in lm.static_range(UNROLL):
                    s = lm.step(ring)
                    left_sb, right_sb = scale_left.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u), scale_right.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u)
                    lm.wait(full, stage=s)
                    if LEAD == 0:
                        lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s].rows(0, 128), init=True)
                    else:
                        lm.wait(turn)
                        lm.mma(part, qa[s].rows(64 * math.index, 64).cols(0, LEAD), qb[s].rows(0, 128).cols(0, LEAD), init=True)
                        lm.mma(part, qa[s].rows(64 * math.index, 64).cols(LEAD, 128 - LEAD), qb[s].rows(0, 128).cols(LEAD, 128 - LEAD))
                    sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=left)
                    lm.fence_proxy()                                                 # the scales were read by loads: this frees their slot, under the products
                    if LEAD > 0:
                        lm.mma_wait(pending=1)                                       # when the first part of the product has ended, ..
                        lm.arrive(turn)                                              # .. the other member's may begin: it runs under this one's promotion
                    lm.mma_wait(pending=0)
                    left = left + part * (sa * left_sb)
                    if LEAD == 0:
                        lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s].rows(128, 128), init=True)
                    else:
                        lm.wait(turn)
                        lm.mma(part, qa[s].rows(64 * math.index, 64).cols(0, LEAD), qb[s].rows(128, 128).cols(0, LEAD), init=True)
                        lm.mma(part, qa[s].rows(64 * math.index, 64).cols(LEAD, 128 - LEAD), qb[s].rows(128, 128).cols(LEAD, 128 - LEAD))
                    if LEAD > 0:
                        lm.mma_wait(pending=1)                                       # when the first part of the product has ended, ..
                        lm.arrive(turn)                                              # .. the other member's may begin: it runs under this one's promotion
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                    right = right + part * (sa * right_sb)
            lm.store_wait(pending=0)                                             # the tile before was read long ago
            lm.sync(own)
            mine = smem_c.rows(64 * math.index, 64)
            mine.cols(0, 128).store(lm.cast(left, lm.bf16))
            mine.cols(128, 128).store(lm.cast(right, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            mine.tma_store(C, coords=(t.n * BN, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

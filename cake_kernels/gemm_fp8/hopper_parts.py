"""Hopper FP8 GEMM: two products a block of 128 along K, each of a part of the columns; the first is promoted while the second runs."""


@cake.schedule(target="sm_90a")
def gemm_fp8_parts(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                  C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                  *, MEMBERS=2, BN=112, STAGES=5, GROUP=8, FIRST=64, CLUSTER=1, HINT=None, UNROLL=1, KMAX=256, REGS=208, LOAD_REGS=40):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]."""
    lm.launch(grid="persistent", cluster=(CLUSTER, 1))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX and KB % UNROLL == 0 and N % 8 == 0 and MP % 4 == 0)

    BM = 64 * MEMBERS
    ONE = 128 % BN == 0                                                          # a tile lies in one block of scales
    a_bytes, b_bytes, c_bytes, s_bytes = STAGES * BM * 128, STAGES * BN * 128, BM * BN * 2, STAGES * BM * 4
    pool = lm.smem(a_bytes + b_bytes + c_bytes + s_bytes + (1 if ONE else 2) * MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, BN), dtype=lm.bf16,
                       swizzle="128b" if BN % 64 == 0 else "64b" if BN % 32 == 0 else "32b" if BN % 16 == 0 else None)
    scale_a = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)
    scale_b = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    if not ONE:
        scale_b2 = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    load_a = lm.role(warps=range(4 * MEMBERS + 4, 4 * MEMBERS + 8), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="warp", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(CLUSTER, 1), raster="m", swizzle=GROUP)

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full, multicast="m" if CLUSTER > 1 else None, cache=HINT)

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full)
                scale_a.tma_load(SA, coords=(t.m * BM, k), stage=s, barrier=full)

    with math:
        lm.pdl_launch()
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        first = lm.frag(shape=(64, FIRST), dtype=lm.f32, form="acc")
        second = lm.frag(shape=(64, BN - FIRST), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            left = lm.frag(shape=(64, FIRST), dtype=lm.f32, form="acc", init=0.0)
            right = lm.frag(shape=(64, BN - FIRST), dtype=lm.f32, form="acc", init=0.0)
            found = lm.load(SB, coords=(t.n * BN // 128 * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(KMAX * math.index, KMAX).store(found)                   # a member's own copy: it meets only itself for it
            if not ONE:
                found2 = lm.load(SB, coords=(lm.min(t.n * BN // 128 + 1, NB - 1) * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
                scale_b2.cols(KMAX * math.index, KMAX).store(found2)
            lm.sync(own)
            for k in lm.range(KB // UNROLL):
                for u in lm.static_range(UNROLL):
                    s = lm.step(ring)
                    sb = scale_b.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u)
                    if not ONE:
                        sb2 = scale_b2.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u)
                    lm.wait(full, stage=s)
                    lm.mma(first, qa[s].rows(64 * math.index, 64), qb[s].rows(0, FIRST), init=True)
                    lm.mma(second, qa[s].rows(64 * math.index, 64), qb[s].rows(FIRST, BN - FIRST), init=True)
                    sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=first)
                    lm.fence_proxy()                                             # the scales were read by loads: this frees their slot, under the product
                    lm.mma_wait(pending=1)
                    if ONE:
                        left = left + first * (sa * sb)                          # .. while the other columns are multiplied
                    else:
                        left = left + first * lm.where(lm.iota(first, axis=1) < 128 - t.n * BN % 128, sa * sb, sa * sb2)
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                    if ONE:
                        right = right + second * (sa * sb)
                    else:
                        right = right + second * lm.where(lm.iota(second, axis=1) < 128 - FIRST - t.n * BN % 128, sa * sb, sa * sb2)
            lm.store_wait(pending=0)                                             # the tile before was read long ago
            lm.sync(own)
            mine = smem_c.rows(64 * math.index, 64)
            mine.cols(0, FIRST).store(lm.cast(left, lm.bf16))
            mine.cols(FIRST, BN - FIRST).store(lm.cast(right, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            mine.tma_store(C, coords=(t.n * BN, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

"""Hopper FP8 GEMM: 64 rows a member, the product of the next block is issued before this block's is promoted, so the tensor core has work under every promotion."""


@cake.schedule(target="sm_90a")
def gemm_fp8_ahead(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                   C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                   *, MEMBERS=2, BN=128, STAGES=5, GROUP=8, CLUSTER=1, CLUSTER_N=1, HINT=None, KMAX=256, REGS=232, LOAD_REGS=24):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; K is a multiple of 512."""
    lm.launch(grid="persistent", cluster=(CLUSTER, CLUSTER_N))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX and KB % 4 == 0 and N % 8 == 0 and MP % 4 == 0)

    BM = 64 * MEMBERS
    ONE = 128 % BN == 0                                                          # a tile lies in one block of scales
    a_bytes, b_bytes, c_bytes, s_bytes = STAGES * BM * 128, STAGES * BN * 128, BM * BN * 2, STAGES * BM * 4
    pool = lm.smem(a_bytes + b_bytes + c_bytes + s_bytes + 2 * (1 if ONE else 2) * KMAX * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, BN), dtype=lm.bf16,
                       swizzle="128b" if BN % 64 == 0 else "64b" if BN % 32 == 0 else "32b" if BN % 16 == 0 else None)
    scale_a = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)
    scale_b = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes, shape=(KMAX,), dtype=lm.f32, stage=2)
    if not ONE:
        scale_b2 = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes + 2 * KMAX * 4, shape=(KMAX,), dtype=lm.f32, stage=2)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    load_a = lm.role(warps=range(4 * MEMBERS + 4, 4 * MEMBERS + 8), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="warp", primed=True, scope="cluster" if CLUSTER * CLUSTER_N > 1 else "cta")
    table = lm.pipeline(stages=2)                                                # the scales of B that a tile needs, all of K
    known = lm.barrier(pipeline=table, prod=[load_b], cons=[math], arrive="tx")
    used = lm.barrier(pipeline=table, prod=[math], cons=[load_b], arrive="warp", primed=True)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), cluster=(CLUSTER, CLUSTER_N), raster="m", swizzle=GROUP)

    with load_b:
        for t in lm.tiles(sched):
            row = lm.step(table)
            lm.wait(used, stage=row)
            scale_b.bulk_load(SB, offset=lm.min(t.n * BN // 128, NB - 1) * KB, n=KB, stage=row, barrier=known)
            if not ONE:
                scale_b2.bulk_load(SB, offset=lm.min(t.n * BN // 128 + 1, NB - 1) * KB, n=KB, stage=row, barrier=known)
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
                qa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full, multicast="n" if CLUSTER_N > 1 else None)
                scale_a.tma_load(SA, coords=(t.m * BM, k), stage=s, barrier=full)

    with math:
        lm.pdl_launch()
        even = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        odd = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row = lm.step(table)
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            lm.wait(known, stage=row)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(even, qa[s].rows(64 * math.index, 64), qb[s], init=True)
            even_sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=even)
            for k in lm.range(KB // 2 - 1):
                sb = scale_b[row].ld(2 * k)
                if not ONE:
                    sb2 = scale_b2[row].ld(2 * k)
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(odd, qa[s].rows(64 * math.index, 64), qb[s], init=True)
                odd_sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=odd)
                lm.fence_proxy()
                lm.mma_wait(pending=1)
                lm.arrive(empty, stage=s.prev())
                if ONE:
                    acc = acc + even * (even_sa * sb)
                else:
                    acc = acc + even * lm.where(lm.iota(even, axis=1) < 128 - t.n * BN % 128, even_sa * sb, even_sa * sb2)
                sb = scale_b[row].ld(2 * k + 1)
                if not ONE:
                    sb2 = scale_b2[row].ld(2 * k + 1)
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(even, qa[s].rows(64 * math.index, 64), qb[s], init=True)
                even_sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=even)
                lm.fence_proxy()
                lm.mma_wait(pending=1)
                lm.arrive(empty, stage=s.prev())
                if ONE:
                    acc = acc + odd * (odd_sa * sb)
                else:
                    acc = acc + odd * lm.where(lm.iota(odd, axis=1) < 128 - t.n * BN % 128, odd_sa * sb, odd_sa * sb2)
            sb = scale_b[row].ld(KB - 2)
            if not ONE:
                sb2 = scale_b2[row].ld(KB - 2)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(odd, qa[s].rows(64 * math.index, 64), qb[s], init=True)
            odd_sa = scale_a[s].cols(64 * math.index, 64).load(form="rowvec", like=odd)
            lm.fence_proxy()
            lm.mma_wait(pending=1)
            lm.arrive(empty, stage=s.prev())
            if ONE:
                acc = acc + even * (even_sa * sb)
            else:
                acc = acc + even * lm.where(lm.iota(even, axis=1) < 128 - t.n * BN % 128, even_sa * sb, even_sa * sb2)
            sb = scale_b[row].ld(KB - 1)
            if not ONE:
                sb2 = scale_b2[row].ld(KB - 1)
            lm.arrive(used, stage=row)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
            if ONE:
                acc = acc + odd * (odd_sa * sb)
            else:
                acc = acc + odd * lm.where(lm.iota(odd, axis=1) < 128 - t.n * BN % 128, odd_sa * sb, odd_sa * sb2)
            lm.store_wait(pending=0)                                             # the tile before was read long ago
            lm.sync(own)
            mine = smem_c.rows(64 * math.index, 64)
            mine.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            mine.tma_store(C, coords=(t.n * BN, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

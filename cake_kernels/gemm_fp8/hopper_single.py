"""Hopper FP8 GEMM, one tile a CTA: 64 rows a member, the scales of the whole tile in shared memory, the first block of A asked for before the rest of B."""


@cake.schedule(target="sm_90a")
def gemm_fp8_single(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                    C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                    *, MEMBERS=2, BN=112, STAGES=6, FIRST=1, ROWS=None, WARM=False, HINT=None, UNROLL=4, KMAX=16):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; at most KMAX blocks along K."""
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX and KB % UNROLL == 0 and KB > FIRST and N % 8 == 0 and MP % 4 == 0)

    BM = 64 * MEMBERS
    if ROWS is not None:
        lm.assume(M <= BM * ROWS)                                                # tiles of rows known: no division in front of the first load
    ONE = 128 % BN == 0                                                          # a tile lies in one block of scales
    a_bytes, b_bytes, c_bytes, s_bytes = STAGES * BM * 128, STAGES * BN * 128, BM * BN * 2, KMAX * BM * 4
    pool = lm.smem(a_bytes + b_bytes + c_bytes + s_bytes + (1 if ONE else 2) * MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, BN), dtype=lm.bf16,
                       swizzle="128b" if BN % 64 == 0 else "64b" if BN % 32 == 0 else "32b" if BN % 16 == 0 else None)
    table_a = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(KMAX, BM), dtype=lm.f32)
    scale_a = pool.view(offset=a_bytes + b_bytes + c_bytes, shape=(KMAX * BM,), dtype=lm.f32)  # the same, to be read in rows
    scale_b = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    if not ONE:
        scale_b2 = pool.view(offset=a_bytes + b_bytes + c_bytes + s_bytes + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)

    math = lm.role(warps=range(0, 4 * MEMBERS), members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 1))
    load_a = lm.role(warps=range(4 * MEMBERS + 1, 4 * MEMBERS + 2))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="warp", primed=True)
    scales = lm.pipeline(stages=1)
    known = lm.barrier(pipeline=scales, prod=[load_a], cons=[math], arrive="tx")
    start = lm.pipeline(stages=1)
    asked = lm.barrier(pipeline=start, prod=[load_a], cons=[load_b], arrive="member")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, BM) if ROWS is None else ROWS, lm.cdiv(N, BN)))

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(FIRST):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full, cache=HINT)
            lm.wait(asked, stage=lm.step(start))                                 # a ring of B in front of A's first block delays it by half a microsecond
            for k in lm.range(FIRST, KB):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full, cache=HINT)

    with load_a:
        if WARM:
            for t in lm.tiles(sched):
                qa.tma_prefetch(A, coords=(t.n % KB * 128, t.m * BM))            # one block a tile: all of A comes from memory at once
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            sc = lm.step(scales)
            table_a.tma_load(SA, coords=(t.m * BM, 0), stage=sc, barrier=known)
            for k in lm.range(FIRST):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full)
            lm.arrive(asked, stage=lm.step(start))
            for k in lm.range(FIRST, KB):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * BM), stage=s, barrier=full)

    with math:
        lm.pdl_launch()
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            found = lm.load(SB, coords=(t.n * BN // 128 * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(KMAX * math.index, KMAX).store(found)                   # a member's own copy: it meets only itself for it
            if not ONE:
                found2 = lm.load(SB, coords=(lm.min(t.n * BN // 128 + 1, NB - 1) * KB,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
                scale_b2.cols(KMAX * math.index, KMAX).store(found2)
            lm.sync(own)
            lm.wait(known, stage=lm.step(scales))
            for k in lm.range(KB // UNROLL):
                for u in lm.static_range(UNROLL):
                    s = lm.step(ring)
                    sb = scale_b.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u)
                    if not ONE:
                        sb2 = scale_b2.cols(KMAX * math.index, KMAX).ld(k * UNROLL + u)
                    lm.wait(full, stage=s)
                    lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s], init=True)
                    sa = scale_a.cols(BM * (k * UNROLL + u) + 64 * math.index, 64).load(form="rowvec", like=part)
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                    if ONE:
                        acc = acc + part * (sa * sb)
                    else:
                        acc = acc + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, sa * sb, sa * sb2)
            mine = smem_c.rows(64 * math.index, 64)
            mine.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            mine.tma_store(C, coords=(t.n * BN, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

"""Hopper FP8 GEMM for few rows: the math warpgroups share one tile and take the blocks of K in turn; they add up through shared memory."""


@cake.schedule(target="sm_90a")
def gemm_fp8_split(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                   C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                   *, MEMBERS=2, BN=64, STAGES=5, FIRST=0, CTAS=1, EARLY=True, ROWS=None, WARM=False, HINT=None, UNROLL=1, KMAX=128):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; tiles of 64 rows, one a CTA."""
    lm.launch(grid="tiles", ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX and N % 8 == 0 and MP % 4 == 0)
    if ROWS is not None:
        lm.assume(M <= 64 * ROWS)
    if FIRST > 0:
        lm.assume(KB >= FIRST * MEMBERS)
    if UNROLL > 1:
        lm.assume(KB % (UNROLL * MEMBERS) == 0)

    BK = 128 * MEMBERS
    a_bytes, b_bytes, p_bytes, c_bytes = STAGES * 64 * BK, STAGES * lm.cdiv(BN * BK, 1024) * 1024, (MEMBERS - 1) * 64 * BN * 4, 64 * BN * 2
    pool = lm.smem(a_bytes + b_bytes + p_bytes + c_bytes + STAGES * MEMBERS * 256 + (1 if 128 % BN == 0 else 2) * MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(64, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    if MEMBERS > 1:
        partial = pool.view(offset=a_bytes + b_bytes, shape=(64, BN), dtype=lm.f32, stage=MEMBERS - 1,
                            swizzle="128b" if BN % 32 == 0 else "64b" if BN % 16 == 0 else "32b")
    smem_c = pool.view(offset=a_bytes + b_bytes + p_bytes, shape=(64, BN), dtype=lm.bf16,
                       swizzle="128b" if BN % 64 == 0 else "64b" if BN % 32 == 0 else "32b" if BN % 16 == 0 else None)
    scale = pool.view(offset=a_bytes + b_bytes + p_bytes + c_bytes, shape=(64 * MEMBERS,), dtype=lm.f32, stage=STAGES)
    t_offset = a_bytes + b_bytes + p_bytes + c_bytes + STAGES * MEMBERS * 256
    scale_b = pool.view(offset=t_offset, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    if 128 % BN != 0:
        scale_b2 = pool.view(offset=t_offset + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)

    math = lm.role(warps=range(0, 4 * MEMBERS), members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 1))
    load_a = lm.role(warps=range(4 * MEMBERS + 1, 4 * MEMBERS + 2))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="warp", primed=True)
    if FIRST > 0:
        start = lm.pipeline(stages=1)
        asked = lm.barrier(pipeline=start, prod=[load_a], cons=[load_b], arrive="member")
    if MEMBERS > 1:
        all_math = lm.named_barrier(math)
    epi = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64) if ROWS is None else ROWS, lm.cdiv(N, BN)))
    kt = lm.cdiv(KB, MEMBERS)

    with load_b:
        for t in lm.tiles(sched):
            if FIRST > 0:
                for k in lm.range(FIRST):
                    s = lm.step(ring)
                    lm.wait(empty, stage=s)
                    qb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full, cache=HINT)
                lm.wait(asked, stage=lm.step(start))                             # the copy engine works in order: A's first blocks go before B's others
            for k in lm.range(FIRST, kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full, cache=HINT)

    with load_a:
        if WARM:
            for t in lm.tiles(sched):
                qa.tma_prefetch(A, coords=(t.n % kt * BK, t.m * 64))             # one round of blocks a tile: all of A comes from memory at once
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            if FIRST > 0:
                for k in lm.range(FIRST):
                    s = lm.step(ring)
                    lm.wait(empty, stage=s)
                    qa.tma_load(A, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                    for i in lm.static_range(MEMBERS):
                        scale.cols(64 * i, 64).tma_load(SA, coords=(t.m * 64, k * MEMBERS + i), stage=s, barrier=full)
                lm.arrive(asked, stage=lm.step(start))
            for k in lm.range(FIRST, kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                for i in lm.static_range(MEMBERS):
                    scale.cols(64 * i, 64).tma_load(SA, coords=(t.m * 64, k * MEMBERS + i), stage=s, barrier=full)

    with math:
        if EARLY:
            lm.pdl_launch()                                                      # the next kernel sets up and fetches its weights meanwhile
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            row = t.n * BN // 128 * KB                                           # where the scales of the tile's first columns lie
            next_row = lm.min(t.n * BN // 128 + 1, NB - 1) * KB                  # .. and of those it has in the next block
            found = lm.load(SB, coords=(row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(KMAX * math.index, KMAX).store(found)                   # a member's own copy: it meets only itself for it
            if 128 % BN != 0:
                found2 = lm.load(SB, coords=(next_row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
                scale_b2.cols(KMAX * math.index, KMAX).store(found2)
            lm.sync(epi)
            for k in lm.range(lm.cdiv(kt, UNROLL)):
                for u in lm.static_range(UNROLL):
                    s = lm.step(ring)
                    sb = scale_b.cols(KMAX * math.index, KMAX).ld((k * UNROLL + u) * MEMBERS + math.index)
                    if 128 % BN != 0:
                        sb2 = scale_b2.cols(KMAX * math.index, KMAX).ld((k * UNROLL + u) * MEMBERS + math.index)
                    lm.wait(full, stage=s)
                    lm.mma(part, qa[s].cols(128 * math.index, 128), qb[s].cols(128 * math.index, 128), init=True)
                    sa = scale[s].cols(64 * math.index, 64).load(form="rowvec", like=part)
                    lm.fence_proxy()                                                 # the scales were read by loads: this frees their slot, under the product
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                    if 128 % BN == 0:
                        acc = acc + part * (sa * sb)
                    else:
                        acc = acc + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, sa * sb, sa * sb2)
            if MEMBERS > 1:
                if math.index > 0:
                    partial[math.index - 1].store(acc)
                lm.sync(all_math)
            if math.index == 0:
                if MEMBERS > 1:
                    for i in lm.static_range(MEMBERS - 1):
                        acc = acc + partial[i].load(form="acc", like=acc)
                smem_c.store(lm.cast(acc, lm.bf16))
                lm.sync(epi)
                lm.pdl_wait()
                lm.store(C, smem_c.load(form="vec"), coords=(t.n * BN, t.m * 64), clip=True)

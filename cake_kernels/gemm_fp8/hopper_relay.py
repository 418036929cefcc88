"""Hopper FP8 GEMM for few rows, two launches an SM: while one launch ends, the next one's CTA on the same SM fills its ring of weights."""


@cake.schedule(target="sm_90a")
def gemm_fp8_relay(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                   C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                   *, MEMBERS=2, BN=56, ASTAGES=3, BSTAGES=4, CTAS=2, CLUSTER=1, GRID=132, LATE=2, AHEAD=0, TURN=0, WARM=False, ROWS=1, HINT="stream", UNROLL=1, KMAX=128):
    """C[M,N] = sum over blocks b of (A[m,b] . B[n,b]) SA[b,m] SB[n/128,b]; tiles of 64 rows, one a CTA; members take the blocks of K in turn.

    At least GRID tiles, so that every SM has one CTA of a launch and never two; those beyond N multiply zeros.
    """
    lm.launch(grid="tiles", cluster=(1, CLUSTER), ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(M <= 64 * ROWS)
    lm.assume(KB * 128 == K and KB <= KMAX and N % 8 == 0 and MP % 4 == 0)
    if UNROLL > 1:
        lm.assume(KB % (UNROLL * MEMBERS) == 0)

    BK = 128 * MEMBERS
    ONE = 128 % BN == 0                                                          # a tile lies in one block of scales
    a_bytes, b_bytes = ASTAGES * 64 * BK, BSTAGES * lm.cdiv(BN * BK, 1024) * 1024
    s_at = a_bytes + b_bytes
    t_at = s_at + ASTAGES * MEMBERS * 256
    pool = lm.smem(t_at + (1 if ONE else 2) * MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(64, BK), dtype=lm.e4m3, stage=ASTAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.e4m3, stage=BSTAGES, swizzle="128b")
    scale_a = pool.view(offset=s_at, shape=(64 * MEMBERS,), dtype=lm.f32, stage=ASTAGES)
    scale_b = pool.view(offset=t_at, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    if not ONE:
        scale_b2 = pool.view(offset=t_at + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    p_bytes = (MEMBERS - 1) * 64 * BN * 4                                        # sums and the result take the place of the operands
    if MEMBERS > 1:
        partial = pool.view(offset=0, shape=(64, BN), dtype=lm.f32, stage=MEMBERS - 1, swizzle="128b" if BN % 32 == 0 else "64b" if BN % 16 == 0 else "32b")
    smem_c = pool.view(offset=p_bytes, shape=(64, BN), dtype=lm.bf16,
                       swizzle="128b" if BN % 64 == 0 else "64b" if BN % 32 == 0 else "32b" if BN % 16 == 0 else None)

    math = lm.role(warps=range(0, 4 * MEMBERS), members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 1))
    load_a = lm.role(warps=range(4 * MEMBERS + 1, 4 * MEMBERS + 2))
    ring_a = lm.pipeline(stages=ASTAGES)
    full_a = lm.barrier(pipeline=ring_a, prod=[load_a], cons=[math], arrive="tx")
    empty_a = lm.barrier(pipeline=ring_a, prod=[math], cons=[load_a], arrive="warp", primed=True, scope="cluster" if CLUSTER > 1 else "cta")
    ring_b = lm.pipeline(stages=BSTAGES)
    full_b = lm.barrier(pipeline=ring_b, prod=[load_b], cons=[math], arrive="tx")
    empty_b = lm.barrier(pipeline=ring_b, prod=[math], cons=[load_b], arrive="warp", primed=True)
    all_math = lm.named_barrier(math)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(ROWS, lm.max(lm.cdiv(N, BN), GRID)), cluster=(1, CLUSTER))
    kt = lm.cdiv(KB, MEMBERS)

    with load_b:
        for t in lm.tiles(sched):
            at = t.n // CLUSTER * TURN % kt                                      # tiles start at different blocks: not all of them at the same lines of A
            for k in lm.range(kt):
                s = lm.step(ring_b)
                lm.wait(empty_b, stage=s)
                qb.tma_load(B, coords=(at * BK, t.n * BN), stage=s, barrier=full_b, cache=HINT)
                if AHEAD > 0:
                    if k + AHEAD < kt:                                           # asked of memory before there is a slot for it
                        qb.tma_prefetch(B, coords=((at + AHEAD) % kt * BK, t.n * BN))
                if AHEAD > BSTAGES:
                    if k == BSTAGES - 1:
                        for j in lm.range(1, lm.min(AHEAD, kt) - BSTAGES + 1):
                            qb.tma_prefetch(B, coords=((at + j) % kt * BK, t.n * BN))
                at = 0 if at + 1 == kt else at + 1
                if k == lm.max(kt - LATE, 0):
                    lm.pdl_launch()                                              # the next launch's weights follow this one's

    with load_a:
        if WARM:
            for t in lm.tiles(sched):
                qa.tma_prefetch(A, coords=(t.n % kt * BK, t.m * 64))             # each tile asks memory for one block of all tiles' activations
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            at = t.n // CLUSTER * TURN % kt
            for k in lm.range(kt):
                s = lm.step(ring_a)
                lm.wait(empty_a, stage=s)
                qa.tma_load(A, coords=(at * BK, t.m * 64), stage=s, barrier=full_a, multicast="n" if CLUSTER > 1 else None)
                for i in lm.static_range(MEMBERS):
                    scale_a.cols(64 * i, 64).tma_load(SA, coords=(t.m * 64, at * MEMBERS + i), stage=s, barrier=full_a)
                at = 0 if at + 1 == kt else at + 1

    with math:
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            row = lm.min(t.n * BN // 128, NB - 1) * KB                           # where the scales of the tile's first columns lie
            next_row = lm.min(t.n * BN // 128 + 1, NB - 1) * KB                  # .. and of those it has in the next block
            found = lm.load(SB, coords=(row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(KMAX * math.index, KMAX).store(found)                   # a member's own copy: it meets only itself for it
            if not ONE:
                found2 = lm.load(SB, coords=(next_row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
                scale_b2.cols(KMAX * math.index, KMAX).store(found2)
            lm.sync(own)
            at = t.n // CLUSTER * TURN % kt
            for k in lm.range(lm.cdiv(kt, UNROLL)):
                for u in lm.static_range(UNROLL):
                    a = lm.step(ring_a)
                    b = lm.step(ring_b)
                    sb = scale_b.cols(KMAX * math.index, KMAX).ld(at * MEMBERS + math.index)
                    if not ONE:
                        sb2 = scale_b2.cols(KMAX * math.index, KMAX).ld(at * MEMBERS + math.index)
                    at = 0 if at + 1 == kt else at + 1
                    lm.wait(full_b, stage=b)
                    lm.wait(full_a, stage=a)
                    lm.mma(part, qa[a].cols(128 * math.index, 128), qb[b].cols(128 * math.index, 128), init=True)
                    sa = scale_a[a].cols(64 * math.index, 64).load(form="rowvec", like=part)
                    lm.fence_proxy()                                             # the scales were read by loads: this frees their slot, under the product
                    lm.mma_wait(pending=0)
                    lm.arrive(empty_b, stage=b)
                    lm.arrive(empty_a, stage=a)
                    if ONE:
                        acc = acc + part * (sa * sb)
                    else:
                        acc = acc + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, sa * sb, sa * sb2)
            lm.sync(all_math)                                                    # nobody multiplies any more
            if MEMBERS > 1:
                if math.index > 0:
                    partial[math.index - 1].store(acc)
                lm.sync(all_math)
            if math.index == 0:
                if MEMBERS > 1:
                    for i in lm.static_range(MEMBERS - 1):
                        acc = acc + partial[i].load(form="acc", like=acc)
                smem_c.store(lm.cast(acc, lm.bf16))
                lm.sync(own)
                lm.pdl_wait()
                lm.store(C, smem_c.load(form="vec"), coords=(t.n * BN, t.m * 64), clip=True)

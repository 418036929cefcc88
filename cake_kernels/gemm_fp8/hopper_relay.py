"""Hopper FP8 GEMM for few rows, two launches an SM: clusters share K, and while they add up the next launch fetches its first weights."""


@cake.schedule(target="sm_90a")
def gemm_fp8_relay(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                   C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                   *, SPLIT=2, MEMBERS=1, BN=64, ASTAGES=5, BSTAGES=7, CTAS=2, GRID=1, LATE=7, ROWS=None, HINT="stream", UNROLL=1, KMAX=128):
    """Tiles of 64 rows; member i of CTA t.k multiplies blocks (t.k * share + k) * MEMBERS + i of K; each CTA adds up a slice of the columns.

    At least GRID clusters: where they fill the device once, no SM has two CTAs of a launch. Those beyond N multiply zeros.
    """
    lm.launch(grid="tiles", cluster=(SPLIT, 1), ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX and N % 8 == 0 and MP % 4 == 0)
    if ROWS is not None:
        lm.assume(M <= 64 * ROWS)
    if UNROLL > 1:
        lm.assume(KB % (UNROLL * SPLIT * MEMBERS) == 0)

    BK, W = 128 * MEMBERS, BN // SPLIT
    ONE = 128 % BN == 0                                                          # a tile lies in one block of scales
    a_bytes, b_bytes, i_bytes = ASTAGES * 64 * BK, BSTAGES * lm.cdiv(BN * BK, 1024) * 1024, (SPLIT - 1) * 64 * W * 4
    s_at = a_bytes + b_bytes + i_bytes
    t_at = s_at + ASTAGES * MEMBERS * 256
    p_bytes = (MEMBERS - 1) * 64 * BN * 4                                        # the members' sums and the result take the place of the operands
    pool = lm.smem(t_at + (1 if ONE else 2) * MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(64, BK), dtype=lm.e4m3, stage=ASTAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.e4m3, stage=BSTAGES, swizzle="128b")
    inbox = pool.view(offset=a_bytes + b_bytes, shape=((SPLIT - 1) * 64, W), dtype=lm.f32, swizzle="128b" if W % 32 == 0 else "64b" if W % 16 == 0 else "32b")
    scale_a = pool.view(offset=s_at, shape=(64 * MEMBERS,), dtype=lm.f32, stage=ASTAGES)
    scale_b = pool.view(offset=t_at, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    if not ONE:
        scale_b2 = pool.view(offset=t_at + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    if MEMBERS > 1:
        partial = pool.view(offset=0, shape=(64, BN), dtype=lm.f32, stage=MEMBERS - 1, swizzle="128b" if BN % 32 == 0 else "64b" if BN % 16 == 0 else "32b")
    smem_c = pool.view(offset=p_bytes, shape=(64, W), dtype=lm.bf16,
                       swizzle="128b" if W % 64 == 0 else "64b" if W % 32 == 0 else "32b" if W % 16 == 0 else None)

    math = lm.role(warps=range(0, 4 * MEMBERS), members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 1))
    load_a = lm.role(warps=range(4 * MEMBERS + 1, 4 * MEMBERS + 2))
    ring_a = lm.pipeline(stages=ASTAGES)
    full_a = lm.barrier(pipeline=ring_a, prod=[load_a], cons=[math], arrive="tx")
    empty_a = lm.barrier(pipeline=ring_a, prod=[math], cons=[load_a], arrive="warp", primed=True)
    ring_b = lm.pipeline(stages=BSTAGES)
    full_b = lm.barrier(pipeline=ring_b, prod=[load_b], cons=[math], arrive="tx")
    empty_b = lm.barrier(pipeline=ring_b, prod=[math], cons=[load_b], arrive="warp", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    if MEMBERS > 1:
        all_math = lm.named_barrier(math)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, 64) if ROWS is None else ROWS, lm.max(lm.cdiv(N, BN), GRID)), names=("k", "m", "n"), cluster=(SPLIT, 1))
    share = lm.cdiv(KB, SPLIT * MEMBERS)

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring_b)
                lm.wait(empty_b, stage=s)
                qb.tma_load(B, coords=((t.k * share + k) * BK, t.n * BN), stage=s, barrier=full_b, cache=HINT)
                if k == lm.max(share - LATE, 0):
                    lm.pdl_launch()                                              # the next launch's weights follow this one's; every CTA says so before one ends

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring_a)
                lm.wait(empty_a, stage=s)
                qa.tma_load(A, coords=((t.k * share + k) * BK, t.m * 64), stage=s, barrier=full_a)
                for i in lm.static_range(MEMBERS):
                    scale_a.cols(64 * i, 64).tma_load(SA, coords=(t.m * 64, (t.k * share + k) * MEMBERS + i), stage=s, barrier=full_a)

    with math:
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            row = lm.min(t.n * BN // 128, NB - 1) * KB                           # where the scales of the tile's first columns lie
            next_row = lm.min(t.n * BN // 128 + 1, NB - 1) * KB                  # .. and of those it has in the next block
            begin = t.k * share * MEMBERS + math.index
            found = lm.load(SB, coords=(row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
            scale_b.cols(KMAX * math.index, KMAX).store(found)                   # a member's own copy: it meets only itself for it
            if not ONE:
                found2 = lm.load(SB, coords=(next_row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB)
                scale_b2.cols(KMAX * math.index, KMAX).store(found2)
            lm.sync(own)
            for k in lm.range(lm.cdiv(share, UNROLL)):                           # beyond the last block A, B and SA are zero
                for u in lm.static_range(UNROLL):
                    a = lm.step(ring_a)
                    b = lm.step(ring_b)
                    at = lm.min(begin + (k * UNROLL + u) * MEMBERS, KB - 1)
                    sb = scale_b.cols(KMAX * math.index, KMAX).ld(at)
                    if not ONE:
                        sb2 = scale_b2.cols(KMAX * math.index, KMAX).ld(at)
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
            box = lm.step(mail)
            if MEMBERS > 1:
                lm.sync(all_math)                                                # nobody multiplies any more
                if math.index > 0:
                    partial[math.index - 1].store(acc)
                lm.sync(all_math)
            if math.index == 0:
                if MEMBERS > 1:
                    for i in lm.static_range(MEMBERS - 1):
                        acc = acc + partial[i].load(form="acc", like=acc)
                for q in lm.static_range(SPLIT):
                    if lm.cta_rank() != q:                                       # slot by slot: what the CTAs after q found, in their order
                        slot = (lm.cta_rank() + SPLIT - q - 1) % SPLIT
                        inbox.rows(slot * 64, 64).send(acc.cols(W * q, W), cta=q, barrier=arrived, stage=box)
                if MEMBERS == 1:
                    lm.sync(own)                                                 # nobody multiplies any more
                lm.wait(arrived, stage=box)
                sums = inbox.rows(0, 64).load(form="acc")
                if SPLIT > 2:
                    for i in lm.static_range(1, SPLIT - 1):
                        sums = sums + inbox.rows(i * 64, 64).load(form="acc")
                for q in lm.static_range(SPLIT):
                    if lm.cta_rank() == q:
                        smem_c.store(lm.cast(acc.cols(W * q, W) + sums, lm.bf16))
                lm.sync(own)
                lm.pdl_wait()
                lm.store(C, smem_c.load(form="vec"), coords=(t.n * BN + W * lm.cta_rank(), t.m * 64), clip=True)

"""Hopper FP8 GEMM for few tiles: the CTAs of a cluster share K, and a member issues the product of the next block before it promotes this block's."""


@cake.schedule(target="sm_90a")
def gemm_fp8_share_ahead(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                         C: LM.tma2d[LM.bf16, "M", "N"],
                         M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                         *, SPLIT=2, MEMBERS=2, BN=128, STAGES=5, HINT=None, KMAX=64, REGS=232, LOAD_REGS=24):
    """CTA t.k of a cluster multiplies blocks t.k * share on of K, a multiple of 512 SPLIT."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX * SPLIT and KB % (4 * SPLIT) == 0 and N % 8 == 0 and MP % 4 == 0)  # the scales of B come in fours

    BM, W = 64 * MEMBERS, BN // SPLIT
    ONE = 128 % BN == 0                                                          # a tile lies in one block of scales
    a_bytes, b_bytes, i_bytes = STAGES * BM * 128, STAGES * BN * 128, (SPLIT - 1) * BM * W * 4
    pool = lm.smem(a_bytes + b_bytes + i_bytes + BM * W * 2 + STAGES * BM * 4 + (1 if ONE else 2) * KMAX * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    if SPLIT > 1:
        inbox = pool.view(offset=a_bytes + b_bytes, shape=((SPLIT - 1) * BM, W), dtype=lm.f32, swizzle="128b" if W % 32 == 0 else "64b" if W % 16 == 0 else "32b")
    smem_c = pool.view(offset=a_bytes + b_bytes + i_bytes, shape=(BM, W), dtype=lm.bf16,
                       swizzle="128b" if W % 64 == 0 else "64b" if W % 32 == 0 else "32b" if W % 16 == 0 else None)
    scale_a = pool.view(offset=a_bytes + b_bytes + i_bytes + BM * W * 2, shape=(BM,), dtype=lm.f32, stage=STAGES)
    t_offset = a_bytes + b_bytes + i_bytes + BM * W * 2 + STAGES * BM * 4
    scale_b = pool.view(offset=t_offset, shape=(KMAX,), dtype=lm.f32)
    if not ONE:
        scale_b2 = pool.view(offset=t_offset + KMAX * 4, shape=(KMAX,), dtype=lm.f32)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    load_a = lm.role(warps=range(4 * MEMBERS + 4, 4 * MEMBERS + 8), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="warp", primed=True)
    table = lm.pipeline(stages=1)                                                # the scales of B that the tile needs
    known = lm.barrier(pipeline=table, prod=[load_b], cons=[math], arrive="tx")
    if SPLIT > 1:
        mail = lm.pipeline(stages=1)
        arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, BM), lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(SPLIT, 1))
    share = KB // SPLIT

    with load_b:
        for t in lm.tiles(sched):
            row = lm.step(table)
            scale_b.bulk_load(SB, offset=lm.min(t.n * BN // 128, NB - 1) * KB + t.k * share, n=share, stage=row, barrier=known)
            if not ONE:
                scale_b2.bulk_load(SB, offset=lm.min(t.n * BN // 128 + 1, NB - 1) * KB + t.k * share, n=share, stage=row, barrier=known)
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = t.k * share + k
                qb.tma_load(B, coords=(at * 128, t.n * BN), stage=s, barrier=full, cache=HINT)

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = t.k * share + k
                qa.tma_load(A, coords=(at * 128, t.m * BM), stage=s, barrier=full)
                scale_a.tma_load(SA, coords=(t.m * BM, at), stage=s, barrier=full)

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
            for k in lm.range(share // 2 - 1):
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
            sb = scale_b[row].ld(share - 2)
            if not ONE:
                sb2 = scale_b2[row].ld(share - 2)
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
            sb = scale_b[row].ld(share - 1)
            if not ONE:
                sb2 = scale_b2[row].ld(share - 1)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
            if ONE:
                acc = acc + odd * (odd_sa * sb)
            else:
                acc = acc + odd * lm.where(lm.iota(odd, axis=1) < 128 - t.n * BN % 128, odd_sa * sb, odd_sa * sb2)
            mine = smem_c.rows(64 * math.index, 64)
            if SPLIT == 1:
                mine.store(lm.cast(acc, lm.bf16))
            else:
                box = lm.step(mail)
                for q in lm.static_range(SPLIT):
                    if lm.cta_rank() != q:                                       # slot by slot: what the CTAs after q found, in their order
                        slot = (lm.cta_rank() + SPLIT - q - 1) % SPLIT
                        inbox.rows(slot * BM + 64 * math.index, 64).send(acc.cols(W * q, W), cta=q, barrier=arrived, stage=box)
                lm.wait(arrived, stage=box)
                found = inbox.rows(64 * math.index, 64).load(form="acc")
                if SPLIT > 2:
                    for i in lm.static_range(1, SPLIT - 1):
                        found = found + inbox.rows(i * BM + 64 * math.index, 64).load(form="acc")
                for q in lm.static_range(SPLIT):
                    if lm.cta_rank() == q:
                        mine.store(lm.cast(acc.cols(W * q, W) + found, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            mine.tma_store(C, coords=(t.n * BN + W * lm.cta_rank(), t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

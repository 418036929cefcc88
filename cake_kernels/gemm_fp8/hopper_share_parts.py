"""Hopper FP8 GEMM for few tiles: two CTAs share K; each half of the columns is promoted while the other is multiplied, and added up by one of them."""


@cake.schedule(target="sm_90a")
def gemm_fp8_share_parts(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                   C: LM.tma2d[LM.bf16, "M", "N"],
                   M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                   *, SPLIT=2, MEMBERS=2, BN=128, STAGES=5, CTAS=1, EARLY=True, HINT=None, UNROLL=1, KMAX=128, REGS=None, LOAD_REGS=40):
    """CTA t.k of a cluster multiplies blocks t.k * share on of K."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1), ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and KB <= KMAX * SPLIT and N % 8 == 0 and MP % 4 == 0)
    if UNROLL > 1:
        lm.assume(KB % (UNROLL * SPLIT) == 0)

    FIRST = BN // SPLIT                                                          # what a CTA adds up is what it multiplies first or second
    BM, W = 64 * MEMBERS, FIRST
    ONE = 128 % BN == 0                                                          # a tile lies in one block of scales
    a_bytes, b_bytes, i_bytes = STAGES * BM * 128, STAGES * BN * 128, (SPLIT - 1) * BM * W * 4
    pool = lm.smem(a_bytes + b_bytes + i_bytes + BM * W * 2 + STAGES * BM * 4 + (1 if ONE else 2) * MEMBERS * KMAX * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    inbox = pool.view(offset=a_bytes + b_bytes, shape=((SPLIT - 1) * BM, W), dtype=lm.f32, swizzle="128b" if W % 32 == 0 else "64b" if W % 16 == 0 else "32b")
    smem_c = pool.view(offset=a_bytes + b_bytes + i_bytes, shape=(BM, W), dtype=lm.bf16,
                       swizzle="128b" if W % 64 == 0 else "64b" if W % 32 == 0 else "32b" if W % 16 == 0 else None)
    scale_a = pool.view(offset=a_bytes + b_bytes + i_bytes + BM * W * 2, shape=(BM,), dtype=lm.f32, stage=STAGES)
    t_offset = a_bytes + b_bytes + i_bytes + BM * W * 2 + STAGES * BM * 4
    scale_b = pool.view(offset=t_offset, shape=(MEMBERS * KMAX,), dtype=lm.f32)
    if not ONE:
        scale_b2 = pool.view(offset=t_offset + MEMBERS * KMAX * 4, shape=(MEMBERS * KMAX,), dtype=lm.f32)

    LW, LR = (1, None) if REGS is None else (4, LOAD_REGS)                       # budgets are for whole warpgroups
    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load_b = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + LW), regs=LR)
    load_a = lm.role(warps=range(4 * MEMBERS + LW, 4 * MEMBERS + 2 * LW), regs=LR)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="warp", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, BM), lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(SPLIT, 1))
    share = lm.cdiv(KB, SPLIT)

    with load_b:
        for t in lm.tiles(sched):
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
        if EARLY:
            lm.pdl_launch()
        line = lm.frag(shape=(KMAX,), dtype=lm.f32, form="vec")
        first = lm.frag(shape=(64, FIRST), dtype=lm.f32, form="acc")
        second = lm.frag(shape=(64, FIRST), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            left = lm.frag(shape=(64, FIRST), dtype=lm.f32, form="acc", init=0.0)
            right = lm.frag(shape=(64, FIRST), dtype=lm.f32, form="acc", init=0.0)
            row = t.n * BN // 128 * KB + t.k * share                             # where the scales of the tile's first columns lie
            row2 = lm.min(t.n * BN // 128 + 1, NB - 1) * KB + t.k * share        # .. and of those it has in the next block
            found = lm.load(SB, coords=(row,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB - t.k * share)
            scale_b.cols(KMAX * math.index, KMAX).store(found)                   # a member's own copy: it meets only itself for it
            if not ONE:
                found2 = lm.load(SB, coords=(row2,), shape=(KMAX,), like=line, mask=lm.iota(line, axis=0) < KB - t.k * share)
                scale_b2.cols(KMAX * math.index, KMAX).store(found2)
            lm.sync(own)
            for k in lm.range(lm.cdiv(share, UNROLL)):
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
            mine = smem_c.rows(64 * math.index, 64)
            box = lm.step(mail)
            if lm.cta_rank() == 0:
                inbox.rows(64 * math.index, 64).send(right, cta=1, barrier=arrived, stage=box)
            else:
                inbox.rows(64 * math.index, 64).send(left, cta=0, barrier=arrived, stage=box)
            lm.wait(arrived, stage=box)
            other = inbox.rows(64 * math.index, 64).load(form="acc")
            if lm.cta_rank() == 0:
                mine.store(lm.cast(left + other, lm.bf16))
            else:
                mine.store(lm.cast(right + other, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            mine.tma_store(C, coords=(t.n * BN + W * lm.cta_rank(), t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

"""Hopper FP8 GEMM for few wide tiles: two CTAs share K, each multiplies the two halves of the columns in turn and adds up one of them."""


@cake.schedule(target="sm_90a")
def gemm_fp8_share2(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.gmem2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                    C: LM.tma2d[LM.bf16, "M", "N"],
                    M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                    *, P=112, STAGES=3, TURNS=False, EARLY=True):
    """Tiles of 128 rows and 2 P columns; CTA t.k of a cluster multiplies blocks t.k * share on of K and stores half t.k."""
    lm.launch(grid="tiles", cluster=(2, 1))
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and N % 8 == 0 and MP % 4 == 0)

    BM, BN = 128, 2 * P
    ONE = P == 128                                                               # a half lies in one block of scales
    a_bytes, b_bytes, i_bytes = STAGES * BM * 128, STAGES * BN * 128, BM * P * 4
    pool = lm.smem(a_bytes + b_bytes + i_bytes)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    inbox = pool.view(offset=a_bytes + b_bytes, shape=(BM, P), dtype=lm.f32, swizzle="128b" if P % 32 == 0 else "64b")
    smem_c = pool.view(offset=0, shape=(BM, P), dtype=lm.bf16, swizzle="128b" if P % 64 == 0 else "64b" if P % 32 == 0 else "32b")  # over slots that are done

    math = lm.role(warps=range(0, 8), regs=216, members=2)
    load_b = lm.role(warps=range(8, 12), regs=40)
    load_a = lm.role(warps=range(12, 16), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_b, load_a], arrive="member", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    every = lm.named_barrier(math)
    if TURNS:
        turn = lm.turns(math)
    sched = lm.scheduler(kind="grid", tiles=(2, lm.cdiv(M, BM), lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(2, 1))
    share = lm.cdiv(KB, 2)

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = t.k * share + k
                qb.tma_load(B, coords=(at * 128, t.n * BN), stage=s, barrier=full)

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                at = t.k * share + k
                qa.tma_load(A, coords=(at * 128, t.m * BM), stage=s, barrier=full)

    with math:
        if EARLY:
            lm.pdl_launch()
        lm.pdl_wait()
        part = lm.frag(shape=(64, P), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            left = lm.frag(shape=(64, P), dtype=lm.f32, form="acc", init=0.0)
            right = lm.frag(shape=(64, P), dtype=lm.f32, form="acc", init=0.0)
            left_row = t.n * BN // 128 * KB                                      # where the scales of each half's first columns lie
            right_row = lm.min((t.n * BN + P) // 128, NB - 1) * KB
            left_next_row = lm.min(t.n * BN // 128 + 1, NB - 1) * KB             # .. and of those it has in the next block
            right_next_row = lm.min((t.n * BN + P) // 128 + 1, NB - 1) * KB
            sa_ahead = lm.load(SA, coords=(t.m * BM + 64 * math.index, lm.min(t.k * share, KB - 1)), shape=(64,), form="rowvec", like=part, clip=True)
            left_ahead, right_ahead = lm.ld(SB, left_row + lm.min(t.k * share, KB - 1)), lm.ld(SB, right_row + lm.min(t.k * share, KB - 1))
            left_next_ahead, right_next_ahead = lm.ld(SB, left_next_row + lm.min(t.k * share, KB - 1)), lm.ld(SB, right_next_row + lm.min(t.k * share, KB - 1))
            for k in lm.range(share):
                at = lm.min(t.k * share + k + 1, KB - 1)
                s = lm.step(ring)
                sa = sa_ahead
                left_sb, right_sb = left_ahead, right_ahead
                if not ONE:
                    left_next, right_next = left_next_ahead, right_next_ahead
                lm.wait(full, stage=s)
                for h in lm.static_range(2):
                    if TURNS:
                        lm.wait(turn)
                    lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s].rows(P * h, P), init=True)
                    if TURNS:
                        lm.arrive(turn)
                    if h == 0:
                        left_ahead, right_ahead = lm.ld(SB, left_row + at), lm.ld(SB, right_row + at)  # a block ahead: it may come from far away
                        sa_ahead = lm.load(SA, coords=(t.m * BM + 64 * math.index, at), shape=(64,), form="rowvec", like=part, clip=True)
                        if not ONE:
                            left_next_ahead, right_next_ahead = lm.ld(SB, left_next_row + at), lm.ld(SB, right_next_row + at)
                    lm.mma_wait(pending=0)
                    if h == 0:
                        if ONE:
                            left = left + part * (sa * left_sb)
                        else:
                            left = left + part * lm.where(lm.iota(part, axis=1) < 128 - t.n * BN % 128, sa * left_sb, sa * left_next)
                    else:
                        lm.arrive(empty, stage=s)
                        if ONE:
                            right = right + part * (sa * right_sb)
                        else:
                            right = right + part * lm.where(lm.iota(part, axis=1) < 128 - (t.n * BN + P) % 128, sa * right_sb, sa * right_next)
            box = lm.step(mail)
            mine = inbox.rows(64 * math.index, 64)
            if lm.cta_rank() == 0:
                mine.send(right, cta=1, barrier=arrived, stage=box)
            else:
                mine.send(left, cta=0, barrier=arrived, stage=box)
            lm.wait(arrived, stage=box)
            found = mine.load(form="acc")
            lm.sync(every)
            staged = smem_c.rows(64 * math.index, 64)
            if lm.cta_rank() == 0:
                staged.store(lm.cast(left + found, lm.bf16))
            else:
                staged.store(lm.cast(right + found, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            staged.tma_store(C, coords=(t.n * BN + P * lm.cta_rank(), t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

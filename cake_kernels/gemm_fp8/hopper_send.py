"""Hopper FP8 GEMM for few tiles: the CTAs of a cluster share K and send each other slices of their sums."""


@cake.schedule(target="sm_90a")
def gemm_fp8_send(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"].const, SA: LM.tma2d[LM.f32, "KB", "MP"], SB: LM.gmem1d[LM.f32].const,
                  C: LM.gmem2d[LM.bf16, "M", "N"],
                  M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, NB: LM.i32, MP: LM.i32,
                  *, SPLIT=4, MEMBERS=2, BN=128, STAGES=5, CTAS=1, LOAD_WARPS=1, REGS=None, LOAD_REGS=None):
    """CTA t.k of a cluster multiplies blocks t.k * share on of K; then each adds up a slice of the columns."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1), ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(KB * 128 == K and N % 8 == 0 and MP % 4 == 0)

    BM = 64 * MEMBERS
    W = BN // SPLIT
    a_bytes, b_bytes, i_bytes = STAGES * BM * 128, STAGES * BN * 128, (SPLIT - 1) * BM * W * 4
    pool = lm.smem(a_bytes + b_bytes + i_bytes + STAGES * BM * 4)
    qa = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    inbox = pool.view(offset=a_bytes + b_bytes, shape=((SPLIT - 1) * BM, W), dtype=lm.f32, swizzle="128b" if W % 32 == 0 else "64b" if W % 16 == 0 else "32b")
    scale = pool.view(offset=a_bytes + b_bytes + i_bytes, shape=(BM,), dtype=lm.f32, stage=STAGES)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + LOAD_WARPS), regs=LOAD_REGS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, BM), lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(SPLIT, 1))
    share = lm.cdiv(KB, SPLIT)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                block = t.k * share + k
                qb.tma_load(B, coords=(block * 128, t.n * BN), stage=s, barrier=full)
                qa.tma_load(A, coords=(block * 128, t.m * BM), stage=s, barrier=full)
                scale.tma_load(SA, coords=(t.m * BM, block), stage=s, barrier=full)

    with math:
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            first = t.n * BN // 128
            second = lm.min(first + 1, NB - 1)
            for k in lm.range(share):
                block = lm.min(t.k * share + k, KB - 1)                          # beyond the last block A, B and SA are zero
                sb = lm.ld(SB, first * KB + block)
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s], init=True)
                sa = scale[s].cols(64 * math.index, 64).load(form="rowvec", like=part)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                if 128 % BN == 0:
                    acc = acc + part * (sa * sb)
                else:
                    next_sb = lm.ld(SB, second * KB + block)
                    inside = lm.iota(part, axis=1) < (first + 1) * 128 - t.n * BN
                    acc = acc + part * (sa * lm.where(inside, sb, next_sb))
            box = lm.step(mail)
            for q in lm.static_range(SPLIT):
                if lm.cta_rank() != q:                                           # slot by slot: what the CTAs after q found, in their order
                    slot = (lm.cta_rank() + SPLIT - q - 1) % SPLIT
                    inbox.rows(slot * BM + 64 * math.index, 64).send(acc.cols(W * q, W), cta=q, barrier=arrived, stage=box)
            lm.wait(arrived, stage=box)
            found = inbox.rows(64 * math.index, 64).load(form="acc")
            if SPLIT > 2:
                for i in lm.static_range(1, SPLIT - 1):
                    found = found + inbox.rows(i * BM + 64 * math.index, 64).load(form="acc")
            for q in lm.static_range(SPLIT):
                if lm.cta_rank() == q:
                    lm.store(C, lm.cast(acc.cols(W * q, W) + found, lm.bf16), coords=(t.n * BN + W * q, t.m * BM + 64 * math.index), clip=True)

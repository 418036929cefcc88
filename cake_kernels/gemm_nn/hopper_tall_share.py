"""Hopper GEMM on a B with N contiguous, for few tiles and a long K: the CTAs of a cluster share K, and each adds up a slice of the columns of a tall tile."""


@cake.schedule(target="sm_90a")
def gemm_nn_tall_share(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "K", "N"].const, C: LM.tma2d[LM.bf16, "M", "N"],
                       M: LM.i32, N: LM.i32, K: LM.i32, *, SPLIT=4, BN=160, BK=64, STAGES=4, PANEL=32, PAIR=1, ALONG="m", REGS=216,
                       LOAD_REGS=40, STREAM=False, EARLY=True):
    """Tiles of 256 x BN, 128 rows a math member; CTA t.k of those that share a tile multiplies `share` steps of K from t.k * share on and stores slice t.k.

    A PAIR of tiles that are neighbours along m fetches each block of B once, along n each block of A. A slot holds whole PANELs of columns of B.
    """
    lm.launch(grid="tiles", cluster=(SPLIT, PAIR))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)

    BM, W = 256, lm.cdiv(BN, 8 * SPLIT) * 8                                       # columns that a CTA adds up
    CW = W if W <= 40 else 16                                                    # at a time
    BW = lm.cdiv(BN, PANEL) * PANEL
    a_bytes, b_bytes, i_bytes = STAGES * BM * BK * 2, STAGES * BW * BK * 2, (SPLIT - 1) * BM * W * 4
    pool = lm.smem(max(a_bytes + b_bytes, i_bytes + BM * W * 2))
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BK, BW), dtype=lm.bf16, stage=STAGES,
                       swizzle="128b" if PANEL == 64 else "64b" if PANEL == 32 else "32b")
    inbox = pool.view(offset=0, shape=((SPLIT - 1) * BM, W), dtype=lm.f32, swizzle="128b" if W % 32 == 0 else "64b" if W % 16 == 0 else "32b")
    smem_c = pool.view(offset=i_bytes, shape=(BM, W), dtype=lm.bf16, swizzle="128b" if W % 64 == 0 else "64b" if W % 32 == 0 else "32b" if W % 16 == 0 else None)

    math = lm.role(warps=range(0, 8), regs=REGS, members=2)
    load_b = lm.role(warps=range(8, 12), regs=LOAD_REGS)
    load_a = lm.role(warps=range(12, 16), regs=LOAD_REGS)
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load_b, load_a], arrive="member", primed=True, scope="cluster" if PAIR > 1 else "cta")
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    free = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="member", scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, BM), lm.cdiv(N, BN)) if ALONG == "m" else (SPLIT, lm.cdiv(N, BN), lm.cdiv(M, BM)),
                         names=("k", "m", "n") if ALONG == "m" else ("k", "n", "m"), cluster=(SPLIT, PAIR))
    share = lm.cdiv(lm.cdiv(K, BK), SPLIT)

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_b.tma_load(B, coords=(t.n * BN, (t.k * share + k) * BK), stage=s, barrier=full, multicast="m" if PAIR > 1 and ALONG == "m" else None,
                               cache="stream" if STREAM else None)

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=((t.k * share + k) * BK, t.m * BM), stage=s, barrier=full, multicast="n" if PAIR > 1 and ALONG == "n" else None,
                               cache="keep" if STREAM else None)

    with math:
        if EARLY:
            lm.pdl_launch()
        rank = lm.cta_rank("k")
        first = lm.cta_rank() - rank                                             # of the CTAs that share my tile
        upper = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        lower = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(upper, smem_a[s].rows(128 * math.index, 64), smem_b[s].cols(0, BN).T, init=(k == 0))
                lm.mma(lower, smem_a[s].rows(128 * math.index + 64, 64), smem_b[s].cols(0, BN).T, init=(k == 0))
                lm.mma_wait(pending=2)                                           # both of the step before have read their slot
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ab))
            box = lm.step(mail)
            lm.arrive(free, stage=box)
            lm.wait(free, stage=box)                                             # nobody in the cluster reads slots any more: they take the sums
            for q in lm.static_range(SPLIT):
                if rank != q:                                                    # box by box: what the CTAs after q found, in their order
                    slot = (rank + SPLIT - q - 1) % SPLIT
                    inbox.rows(slot * BM + 128 * math.index, 64).send(upper.cols(lm.min(W * q, BN - W), W), cta=first + q, barrier=arrived, stage=box)
                    inbox.rows(slot * BM + 128 * math.index + 64, 64).send(lower.cols(lm.min(W * q, BN - W), W), cta=first + q, barrier=arrived, stage=box)
            lm.wait(arrived, stage=box)
            top, bottom = smem_c.rows(128 * math.index, 64), smem_c.rows(128 * math.index + 64, 64)
            for j in lm.static_range(W // CW):
                above = inbox.rows(128 * math.index, 64).cols(CW * j, CW).load(form="acc")
                below = inbox.rows(128 * math.index + 64, 64).cols(CW * j, CW).load(form="acc")
                for i in lm.static_range(1, SPLIT - 1):
                    above = above + inbox.rows(BM * i + 128 * math.index, 64).cols(CW * j, CW).load(form="acc")
                    below = below + inbox.rows(BM * i + 128 * math.index + 64, 64).cols(CW * j, CW).load(form="acc")
                for q in lm.static_range(SPLIT):
                    if rank == q:
                        top.cols(CW * j, CW).store(lm.cast(upper.cols(lm.min(W * q, BN - W) + CW * j, CW) + above, lm.bf16))
                        bottom.cols(CW * j, CW).store(lm.cast(lower.cols(lm.min(W * q, BN - W) + CW * j, CW) + below, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            if SPLIT * W == BN or rank < SPLIT - 1:
                top.tma_store(C, coords=(t.n * BN + W * rank, t.m * BM + 128 * math.index))
                bottom.tma_store(C, coords=(t.n * BN + W * rank, t.m * BM + 128 * math.index + 64))
            else:                                                                # the last slice begins in the one before, which stores what they share
                top.cols(SPLIT * W - BN, BN - (SPLIT - 1) * W).tma_store(C, coords=(t.n * BN + W * (SPLIT - 1), t.m * BM + 128 * math.index))
                bottom.cols(SPLIT * W - BN, BN - (SPLIT - 1) * W).tma_store(C, coords=(t.n * BN + W * (SPLIT - 1), t.m * BM + 128 * math.index + 64))
        lm.store_wait(pending=0)

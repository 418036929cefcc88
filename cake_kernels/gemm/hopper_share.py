"""Hopper GEMM for few tiles and a long K: two CTAs share K, and each adds up half of the columns through the other's shared memory."""


@cake.schedule(target="sm_90a")
def gemm_share(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"].const, C: LM.tma2d[LM.bf16, "M", "N"],
               M: LM.i32, N: LM.i32, K: LM.i32, *, BN=160, BK=64, STAGES=5, EARLY=True):
    """Tiles of 128 x BN; CTA t.k of a cluster multiplies `share` steps of K from t.k * share on and stores half t.k."""
    lm.launch(grid="tiles", cluster=(2, 1))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)

    BM, W = 128, BN // 2
    CW = 32 if W % 32 == 0 else 16                                               # columns that are added up at a time
    a_bytes, b_bytes = STAGES * BM * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes)
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    inbox = pool.view(offset=0, shape=(BM, W), dtype=lm.f32, swizzle="128b" if W % 32 == 0 else "64b" if W % 16 == 0 else "32b")
    smem_c = pool.view(offset=BM * W * 4, shape=(BM, W), dtype=lm.bf16, swizzle="128b" if W % 64 == 0 else "64b" if W % 32 == 0 else "32b")

    math = lm.role(warps=range(0, 8), members=2)
    load_b = lm.role(warps=range(8, 9))
    load_a = lm.role(warps=range(9, 10))
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load_b, load_a], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load_b, load_a], arrive="member", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    free = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="member", scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(2, lm.cdiv(M, BM), lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(2, 1))
    share = lm.cdiv(lm.cdiv(K, BK), 2)

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_b.tma_load(B, coords=((t.k * share + k) * BK, t.n * BN), stage=s, barrier=full)

    with load_a:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=((t.k * share + k) * BK, t.m * BM), stage=s, barrier=full)

    with math:
        if EARLY:
            lm.pdl_launch()
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s].rows(64 * math.index, 64), smem_b[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ab))
            box = lm.step(mail)
            lm.arrive(free, stage=box)
            lm.wait(free, stage=box)                                             # nobody in the cluster reads slots any more: they take the sums
            mine = inbox.rows(64 * math.index, 64)
            if lm.cta_rank() == 0:
                mine.send(acc.cols(W, W), cta=1, barrier=arrived, stage=box)
            else:
                mine.send(acc.cols(0, W), cta=0, barrier=arrived, stage=box)
            lm.wait(arrived, stage=box)
            staged = smem_c.rows(64 * math.index, 64)
            for j in lm.static_range(W // CW):
                found = mine.cols(CW * j, CW).load(form="acc")
                if lm.cta_rank() == 0:
                    staged.cols(CW * j, CW).store(lm.cast(acc.cols(CW * j, CW) + found, lm.bf16))
                else:
                    staged.cols(CW * j, CW).store(lm.cast(acc.cols(W + CW * j, CW) + found, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            lm.pdl_wait()
            staged.tma_store(C, coords=(t.n * BN + W * lm.cta_rank(), t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)

"""Hopper GEMM for few tiles and a long K: the CTAs of a cluster share K and send each other slices of their sums."""


@cake.schedule(target="sm_90a")
def gemm_send(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
              M: LM.i32, N: LM.i32, K: LM.i32, *, SPLIT=2, MEMBERS=2, BN=160, BK=64, STAGES=5):
    """CTA t.k of a cluster multiplies `share` steps of K; then each adds up a slice of the columns."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)

    BM = 64 * MEMBERS
    a_bytes = STAGES * BM * BK * 2
    W = BN // SPLIT
    b_bytes = STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + (SPLIT - 1) * BM * W * 4)
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    inbox = pool.view(offset=a_bytes + b_bytes, shape=((SPLIT - 1) * BM, W), dtype=lm.f32, swizzle="128b" if W % 32 == 0 else "64b" if W % 16 == 0 else "32b")

    math = lm.role(warps=range(0, 4 * MEMBERS), members=MEMBERS)
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 1))
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="member", primed=True)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, BM), lm.cdiv(N, BN)), names=("k", "m", "n"), cluster=(SPLIT, 1))
    share = lm.cdiv(lm.cdiv(K, BK), SPLIT)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=((t.k * share + k) * BK, t.m * BM), stage=s, barrier=full)
                smem_b.tma_load(B, coords=((t.k * share + k) * BK, t.n * BN), stage=s, barrier=full)

    with math:
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

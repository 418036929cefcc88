@cake.schedule(target="sm_90a")
def splitk_reduce_add(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.f32, "M", "N"].zeroed, M: LM.i32, N: LM.i32, K: LM.i32, *, BN=64, BK=64, STAGES=4, KPART=4):
    """Split K whose parts the copy engine adds up in memory."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 4 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 128 * BN * 4)
    smem_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(128, BN), dtype=lm.f32, swizzle="128b")
    math = lm.role(warps=range(0, 8), members=2)
    load = lm.role(warps=range(8, 9))
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(math, per_member=True)
    kt = lm.cdiv(K, BK)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(kt, KPART), lm.cdiv(M, 128), lm.cdiv(N, BN)), names=("p", "m", "n"))
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(t.p * KPART, lm.min(kt, (t.p + 1) * KPART)):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                smem_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            k0 = t.p * KPART
            for k in lm.range(k0, lm.min(kt, k0 + KPART)):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s].rows(64 * math.index, 64), smem_b[s], init=(k == k0))
                lm.mma_wait(pending=1)
                if k > k0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ab))
            lm.store_wait(pending=0)
            lm.sync(own)
            smem_c.rows(64 * math.index, 64).store(acc)
            lm.fence_proxy()
            lm.sync(own)
            smem_c.rows(64 * math.index, 64).tma_reduce(C, coords=(t.n * BN, t.m * 128 + 64 * math.index), op="add", order="any")
        lm.store_wait(pending=0)

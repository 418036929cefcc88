@cake.schedule(target="sm_90a")
def gemm_counter_multicast(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], BIAS: LM.gmem1d[LM.f32, "N"], C: LM.tma2d[LM.bf16, "M", "N"],
                           NEXT: LM.gmem1d[LM.i32, 1].zeroed, M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=4):
    """C = A B^T + bias; clusters of two share each block of B, and draw their tiles from a counter."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 128 * BN * 2)
    smem_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(128, BN), dtype=lm.bf16, swizzle="128b")

    math = lm.role(warps=range(0, 8), regs=208, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="member", primed=True, scope="cluster")
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="counter", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), raster="m", swizzle=4, counter=NEXT, fetch=load)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                smem_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full, multicast="m")

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        mine = smem_c.rows(64 * math.index, 64)
        for t in lm.tiles(sched):
            bias = lm.load(BIAS, coords=(t.n * BN,), shape=(BN,), form="colvec", like=acc, clip=True)
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s].rows(64 * math.index, 64), smem_b[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ab))
            lm.store_wait(pending=0)
            lm.sync(own)
            mine.store(lm.cast(acc + bias, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            mine.tma_store(C, coords=(t.n * BN, t.m * 128 + 64 * math.index))
        lm.store_wait(pending=0)

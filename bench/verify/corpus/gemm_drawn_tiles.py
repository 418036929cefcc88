"""GEMM whose tiles are drawn from a counter in memory: loading is a role with two warps to spare, three warpgroups take turns."""


@cake.schedule(target="sm_90a")
def gemm_drawn_tiles(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.f32, "M", "N"], NEXT: LM.gmem1d[LM.i32, 1].zeroed,
                     M: LM.i32, N: LM.i32, K: LM.i32, *, BN=64, BK=64, STAGES=4):
    """C = A B^T in 192 x BN tiles, 64 rows a warpgroup."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 4 == 0)
    a_bytes, b_bytes = STAGES * 192 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 192 * BN * 4)
    sa = pool.view(offset=0, shape=(192, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=a_bytes + b_bytes, shape=(192, BN), dtype=lm.f32, swizzle="128b")
    load = lm.role(warps=range(0, 4), regs=32)
    math = lm.role(warps=range(4, 16), regs=152, members=3)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(math, per_member=True)
    turn = lm.turns(math)
    sched = lm.scheduler(kind="counter", tiles=(lm.cdiv(M, 192), lm.cdiv(N, BN)), counter=NEXT, fetch=load)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 192), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        mine = sc.rows(64 * math.index, 64)
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.wait(turn)
                lm.mma(acc, sa[s].rows(64 * math.index, 64), sb[s], init=(k == 0))
                lm.arrive(turn)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store_wait(pending=0)
            lm.sync(own)
            mine.store(acc)
            lm.fence_proxy()
            lm.sync(own)
            mine.tma_store(C, coords=(t.n * BN, t.m * 192 + 64 * math.index))
        lm.store_wait(pending=0)

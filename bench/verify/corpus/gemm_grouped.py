"""Grouped GEMM for experts: groups of rows of any length, each with a weight matrix of its own."""


@cake.schedule(target="sm_90a")
def gemm_grouped(lm, A: LM.tma2d[LM.bf16, "T", "K"], B: LM.tma3d[LM.bf16, "G", "N", "K"], C: LM.tma2d[LM.bf16, "T", "N"],
                 OFFS: LM.gmem1d[LM.i32, "G1"].const, T: LM.i32, G: LM.i32, G1: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=4):
    """C[r] = A[r] B[g]^T for the rows r in OFFS[g] .. OFFS[g + 1]; the tail of a group is stored row by row."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and G > 0 and G1 == G + 1)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    lm.assume_values(OFFS, 0, T + 1, sorted=True)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 128 * BN * 2)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=a_bytes + b_bytes, shape=(128, BN), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="grouped", tiles=(lm.cdiv(N, BN),), offsets=OFFS, block=128)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.row0), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN, t.group), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        mine = sc.rows(64 * math.index, 64)
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s].rows(64 * math.index, 64), sb[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ring))
            lm.store_wait(pending=0)
            lm.sync(own)
            mine.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            rows = lm.min(64, t.rows - 64 * math.index)
            if rows > 0:
                mine.tma_store(C, coords=(t.n * BN, t.row0 + 64 * math.index), rows=rows)
        lm.store_wait(pending=0)

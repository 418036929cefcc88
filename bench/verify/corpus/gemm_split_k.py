"""GEMM whose two math warpgroups share one output tile and split K inside every slot; they add up through shared memory."""


@cake.schedule(target="sm_90a")
def gemm_split_k(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
                 M: LM.i32, N: LM.i32, K: LM.i32, *, BN=64, BK=64, STAGES=4):
    """C = A B^T for few rows: 64 x BN tiles, member i takes columns i * BK / 2 on of every slot."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 64 * BN * 4)
    sa = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    partial = pool.view(offset=a_bytes + b_bytes, shape=(64, BN), dtype=lm.f32, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    both = lm.named_barrier(math)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, BN)))
    kt = lm.cdiv(K, BK)
    half = BK // 2

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s].cols(half * math.index, half), sb[s].cols(half * math.index, half), init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ring))
            if math.index == 1:
                partial.store(acc)
            lm.sync(both)
            if math.index == 0:
                other = partial.load(form="acc", like=acc)
                lm.store(C, lm.cast(acc + other, lm.bf16), coords=(t.n * BN, t.m * 64), clip=True)
            lm.sync(both)                                      # the partial sums have been read

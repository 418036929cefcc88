"""One tile a CTA: once the ring is drained, the output tile is staged where the operands were."""


@cake.schedule(target="sm_90a")
def gemm_aliased_epilogue(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"],
                          M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=4):
    """C = relu(A B^T)."""
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(max(a_bytes + b_bytes, 128 * BN * 2))
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=0, shape=(128, BN), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    both = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), swizzle=8)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s].rows(64 * math.index, 64), sb[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.sync(both)                                      # nobody reads the ring any more, and nothing is loaded into it
            out.rows(64 * math.index, 64).store(lm.cast(lm.max(acc, 0.0), lm.bf16))
            lm.fence_proxy()
            lm.sync(both)
            if math.index == 0:
                out.tma_store(C, coords=(t.n * BN, t.m * 128))
                lm.store_wait(pending=0)

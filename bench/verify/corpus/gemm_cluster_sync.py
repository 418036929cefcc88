"""GEMM of short sums on clusters of two: one slot for a whole tile, and the cluster's barrier between tiles instead of empty barriers."""


@cake.schedule(target="sm_90a")
def gemm_cluster_sync(lm, A: LM.tma2d[LM.bf16, "M", "DEPTH"], B: LM.tma2d[LM.bf16, "N", "DEPTH"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32,
                      *, BN=64, DEPTH=128):
    """C = A B^T over DEPTH elements; both CTAs use one tile of B, each loads half of it for both."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(N % 4 == 0)
    pool = lm.smem(64 * DEPTH * 2 + BN * DEPTH * 2)
    sa = pool.view(offset=0, shape=(64, DEPTH), dtype=lm.bf16, swizzle="128b")
    sb = pool.view(offset=64 * DEPTH * 2, shape=(BN, DEPTH), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=160)
    load = lm.role(warps=range(4, 8), regs=40)
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, BN)), cluster=(2, 1))

    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            sa.tma_load(A, coords=(0, t.m * 64), stage=s, barrier=full)
            sb.tma_load(B, coords=(0, t.n * BN), stage=s, barrier=full, multicast="m")
            lm.cluster_sync()

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(acc, sa, sb, init=True)
            lm.mma_wait(pending=0)
            lm.cluster_sync()                                  # both CTAs have read what the next tile overwrites
            lm.store(C, acc, coords=(t.n * BN, t.m * 64), clip=True)

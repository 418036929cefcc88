"""Weight gradients of experts: dW[e] = dY[rows of e]^T X[rows of e]; the reduction runs over a ragged range read from memory, whole blocks of 64 rows."""


@cake.schedule(target="sm_90a")
def gemm_k_grouped(lm, DY: LM.tma2d[LM.bf16, "T", "N"], X: LM.tma2d[LM.bf16, "T", "K"], DW: LM.tma3d[LM.f32, "E", "N", "K"], OFFS: LM.gmem1d[LM.i32, "E1"],
                   T: LM.i32, N: LM.i32, K: LM.i32, E: LM.i32, E1: LM.i32, *, STAGES=4):
    """Weight gradients of experts: dW[e] = dY[rows of e]^T X[rows of e]; the reduction runs over a ragged range read from memory, whole blocks of 64 rows."""
    lm.launch(grid="persistent")
    lm.assume(E1 == E + 1 and N % 128 == 0 and K % 128 == 0)
    lm.assume_values(OFFS, 0, T + 1, sorted=True)
    b = 64 * 128 * 2
    pool = lm.smem(2 * STAGES * b + 2 * 64 * 128 * 4)
    dy = pool.view(offset=0, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    x = pool.view(offset=STAGES * b, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=2 * STAGES * b, shape=(128, 128), dtype=lm.f32, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(N // 128, K // 128, E), names=("n", "k", "e"))
    with load:
        for t in lm.tiles(sched):
            lo, hi = lm.ld(OFFS, t.e), lm.ld(OFFS, t.e + 1)
            for r in lm.range((hi - lo) // 64):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                dy.tma_load(DY, coords=(t.n * 128, lo + r * 64), stage=s, barrier=full)
                x.tma_load(X, coords=(t.k * 128, lo + r * 64), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            lo, hi = lm.ld(OFFS, t.e), lm.ld(OFFS, t.e + 1)
            acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
            for r in lm.range((hi - lo) // 64):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, dy[s].cols(64 * math.index, 64).T, x[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store_wait(pending=0)
            lm.sync(own)
            mine = out.rows(64 * math.index, 64)
            mine.store(acc)
            lm.fence_proxy()
            lm.sync(own)
            mine.tma_store(DW, coords=(t.k * 128, t.n * 128 + 64 * math.index, t.e))
        lm.store_wait(pending=0)

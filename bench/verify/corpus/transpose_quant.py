"""Two e4m3 copies of a matrix, one of them transposed, through rings on both sides."""


@cake.schedule(target="sm_90a")
def transpose_quant(lm, X: LM.tma2d[LM.bf16, "M", "N"], inv: LM.gmem1d[LM.f32, 1], Y: LM.tma2d[LM.e4m3, "N", "M"], YN: LM.tma2d[LM.e4m3, "M", "N"], M: LM.i32, N: LM.i32, *, STAGES=4):
    """e4m3 copies of X for both products of a training step: as it lies, and transposed. A load warpgroup feeds two groups of warps, which take tiles in turn."""
    lm.launch(grid="persistent", ctas_per_sm=1)
    lm.assume(M % 16 == 0 and N % 16 == 0)
    x_bytes = STAGES * 64 * 64 * 2
    pool = lm.smem(x_bytes + 4 * 64 * 64)
    smem_x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_t = pool.view(offset=x_bytes, shape=(64, 64), dtype=lm.e4m3, stage=2)
    smem_n = pool.view(offset=x_bytes + 2 * 64 * 64, shape=(64, 64), dtype=lm.e4m3, stage=2)
    load = lm.role(warps=range(0, 4), regs=40)
    math = lm.role(warps=range(4, 8), regs=232)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    outs = lm.pipeline(stages=2)
    own = lm.named_barrier(math)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(N, 64), lm.cdiv(M, 64)), names=("n", "m"))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            smem_x.tma_load(X, coords=(t.n * 64, t.m * 64), stage=s, barrier=full)
    with math:
        k = lm.ld(inv, 0)
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            x = smem_x[s].load(form="acc")
            xt = smem_x[s].T.load(form="acc")
            lm.arrive(empty, stage=s)
            o = lm.step(outs)
            lm.store_wait(pending=2)
            lm.sync(own)
            smem_n[o].store(lm.cast(lm.cast(x, lm.f32) * k, lm.e4m3))
            smem_t[o].store(lm.cast(lm.cast(xt, lm.f32) * k, lm.e4m3))
            lm.fence_proxy()
            lm.sync(own)
            smem_n[o].tma_store(YN, coords=(t.n * 64, t.m * 64))
            smem_t[o].tma_store(Y, coords=(t.m * 64, t.n * 64))
        lm.store_wait(pending=0)

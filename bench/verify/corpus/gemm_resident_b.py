"""Projection to few columns: the weights stay in shared memory, activations stream past them; starts before its upstream kernel ends."""


@cake.schedule(target="sm_90a")
def gemm_resident_b(lm, X: LM.tma2d[LM.bf16, "M", "K"], W: LM.tma2d[LM.bf16, "N", "K"].const, BIAS: LM.gmem1d[LM.f32, "N"].const,
                    Y: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, *, N=64, K=256, STAGES=2):
    """Y = gelu(X W^T + bias); one load of W a CTA, on a barrier that nobody frees."""
    lm.launch(grid="persistent")
    w_bytes = N * K * 2
    pool = lm.smem(w_bytes + STAGES * 64 * K * 2)
    weights = pool.view(offset=0, shape=(N, K), dtype=lm.bf16, swizzle="128b")
    rows = pool.view(offset=w_bytes, shape=(64, K), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    load = lm.role(warps=range(4, 8), regs=40)
    once = lm.pipeline(stages=1)
    w_full = lm.barrier(pipeline=once, prod=[load], cons=[math], arrive="tx")
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64),), names=("m",))

    with load:
        w = lm.step(once)
        weights.tma_load(W, coords=(0, 0), stage=w, barrier=w_full)
        lm.pdl_wait()
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            rows.tma_load(X, coords=(0, t.m * 64), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, N), dtype=lm.f32, form="acc")
        bias = lm.load(BIAS, coords=(0,), shape=(N,), form="colvec", like=acc, cache="keep")
        lm.pdl_wait()
        w = lm.step(once)
        lm.wait(w_full, stage=w)
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(acc, rows[s], weights, init=True)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
            lm.store(Y, lm.cast(lm.gelu(acc + bias), lm.bf16), coords=(0, t.m * 64), clip=True)
        lm.pdl_launch()

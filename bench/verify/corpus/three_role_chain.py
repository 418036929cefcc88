@cake.schedule(target=("sm_103a", "sm_90a"))
def three_role_chain(lm, X: LM.tma2d[LM.bf16, "M", "F"], B: LM.gmem1d[LM.f32, "F"], Y: LM.tma2d[LM.bf16, "M", "F"], M: LM.i32, F: LM.i32, *, ROWS=64, STAGES=3, OUTS=2):
    """bias and gelu with a role for each step: one warp brings boxes, four compute, one takes results away; a ring between each two."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(F % 64 == 0)
    box = ROWS * 64 * 2
    pool = lm.smem((STAGES + OUTS) * box)
    smem_x = pool.view(offset=0, shape=(ROWS, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_y = pool.view(offset=STAGES * box, shape=(ROWS, 64), dtype=lm.bf16, stage=OUTS, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    away = lm.role(warps=range(5, 6))
    ring = lm.pipeline(stages=STAGES)
    outs = lm.pipeline(stages=OUTS)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    ready = lm.barrier(pipeline=outs, prod=[work], cons=[away], arrive="thread")
    free = lm.barrier(pipeline=outs, prod=[away], cons=[work], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(F // 64, lm.cdiv(M, ROWS)), names=("f", "m"))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            smem_x.tma_load(X, coords=(t.f * 64, t.m * ROWS), stage=s, barrier=full)
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            x = lm.cast(smem_x[s].load(form="acc"), lm.f32)
            lm.arrive(empty, stage=s)
            b = lm.load(B, coords=(t.f * 64,), shape=(64,), form="colvec", like=x)
            o = lm.step(outs)
            lm.wait(free, stage=o)
            smem_y[o].store(lm.cast(lm.gelu(x + b), lm.bf16))
            lm.fence_proxy()
            lm.arrive(ready, stage=o)
    with away:
        n = 0
        for t in lm.tiles(sched):
            o = lm.step(outs)
            lm.wait(ready, stage=o)
            smem_y[o].tma_store(Y, coords=(t.f * 64, t.m * ROWS))
            lm.store_wait(pending=1)
            if n > 0:
                lm.arrive(free, stage=o.prev())
            n = n + 1
        lm.store_wait(pending=0)

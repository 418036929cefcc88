"""RMSNorm with a load warp and one math warp a row: the warps of a CTA never meet, a slot holds one row for each of them."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a"))
def rmsnorm_ring_warps(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], W: LM.gmem1d[LM.bf16, "D"].const, Y: LM.gmem2d[LM.bf16, "ROWS", "D"], ROWS: LM.i32,
                       eps: LM.f32, *, D=2048, WARPS=7, CTAS=1, STAGES=4):
    """y = x * rsqrt(mean(x^2) + eps) * w; a slot is WARPS consecutive rows, fetched by one bulk copy."""
    lm.launch(grid="persistent", ctas_per_sm=CTAS)
    lm.assume(D % 256 == 0)
    pool = lm.smem(STAGES * WARPS * D * 2)
    block = pool.view(offset=0, shape=(WARPS, D), dtype=lm.bf16, stage=STAGES)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    load = lm.role(warps=range(WARPS, WARPS + 1))
    rows = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=rows, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=rows, prod=[work], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(ROWS, WARPS),), names=("m",))

    with load:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            s = lm.step(rows)
            lm.wait(empty, stage=s)
            block.bulk_load(X, offset=t.m * WARPS * D, n=lm.min(WARPS, ROWS - t.m * WARPS) * D, stage=s, barrier=full)

    with work:
        w = lm.load(W, coords=(0,), shape=(D,), form="vec", cache="keep")
        lm.pdl_wait()
        for t in lm.tiles(sched):
            s = lm.step(rows)
            lm.wait(full, stage=s)
            x = block[s].rows(work.index, 1).load(form="vec")
            lm.arrive(empty, stage=s)
            row = t.m * WARPS + work.index
            if row < ROWS:
                ss = lm.reduce(lm.cast(x, lm.f32) * lm.cast(x, lm.f32), "add")
                y = lm.cast(x, lm.f32) * lm.rsqrt(ss * (1.0 / D) + eps) * lm.cast(w, lm.f32)
                lm.store(Y, lm.cast(y, lm.bf16), coords=(0, row))
        lm.pdl_launch()

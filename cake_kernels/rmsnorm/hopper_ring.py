"""RMSNorm with a load warp: rows arrive by bulk copy in a ring of slots, so that reads stay in flight whatever the arithmetic does."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a"))
def rmsnorm_ring(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], W: LM.gmem1d[LM.bf16, "D"].const, Y: LM.gmem2d[LM.bf16, "ROWS", "D"], ROWS: LM.i32,
                 eps: LM.f32, *, D=4096, WARPS=8, CTAS=2, STAGES=4):
    """y = x * rsqrt(mean(x^2) + eps) * w, one row a slot, all math warps on one row."""
    lm.launch(grid="persistent", ctas_per_sm=CTAS)
    lm.assume(D % (WARPS * 32 * 8) == 0)
    pool = lm.smem(STAGES * D * 2 + 2 * WARPS * 4)
    row = pool.view(offset=0, shape=(D,), dtype=lm.bf16, stage=STAGES)
    part = pool.view(offset=STAGES * D * 2, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    load = lm.role(warps=range(WARPS, WARPS + 1))
    rows = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=rows, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=rows, prod=[work], cons=[load], arrive="warp", primed=True)
    ring = lm.pipeline(stages=2)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))

    with load:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            s = lm.step(rows)
            lm.wait(empty, stage=s)
            row.bulk_load(X, offset=t.r * D, n=D, stage=s, barrier=full)

    with work:
        w = lm.load(W, coords=(0,), shape=(D,), form="vec", cache="keep")
        lm.pdl_wait()
        for t in lm.tiles(sched):
            s = lm.step(rows)
            lm.wait(full, stage=s)
            x = row[s].load(form="vec")
            lm.arrive(empty, stage=s)
            xf = lm.cast(x, lm.f32)
            c = lm.step(ring)
            ss = lm.reduce(xf * xf, "add", across=work, scratch=part[c], sync=cta)
            y = xf * lm.rsqrt(ss * (1.0 / D) + eps) * lm.cast(w, lm.f32)
            lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.r))
        lm.pdl_launch()

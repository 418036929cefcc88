"""Mean of segments of rows: trip counts come from an offsets array, tails are masked, empty segments give zero."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def segment_mean(lm, X: LM.tma2d[LM.f32, "T", "D"], OFFS: LM.gmem1d[LM.i32, "NS1"].const, Y: LM.gmem2d[LM.f32, "NS", "D"],
                 T: LM.i32, NS: LM.i32, NS1: LM.i32, *, D=128, ROWS=32, STAGES=3):
    """Y[s] = mean of X[OFFS[s] .. OFFS[s + 1]]; thread i owns column i."""
    lm.launch(grid="persistent")
    lm.assume(NS1 == NS + 1)
    lm.assume_values(OFFS, 0, T + 1, sorted=True)
    pool = lm.smem(STAGES * ROWS * D * 4)
    sx = pool.view(offset=0, shape=(ROWS, D), dtype=lm.f32, stage=STAGES)
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="thread", primed=True)
    sched = lm.scheduler(kind="static", tiles=(NS,), names=("s",))

    with load:
        for t in lm.tiles(sched):
            lo = lm.ld(OFFS, t.s)
            for i in lm.range(lm.cdiv(lm.ld(OFFS, t.s + 1) - lo, ROWS)):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sx.tma_load(X, coords=(0, lo + i * ROWS), stage=s, barrier=full)

    with work:
        for t in lm.tiles(sched):
            lo = lm.ld(OFFS, t.s)
            n = lm.ld(OFFS, t.s + 1) - lo
            total = lm.frag(shape=(1, D), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(lm.cdiv(n, ROWS)):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                for r in lm.static_range(ROWS):
                    x = sx[s].rows(r, 1).load(form="vec", like=total)
                    if i * ROWS + r < n:
                        total = total + x
                lm.arrive(empty, stage=s)
            lm.store(Y, total / lm.max(lm.cast(n, lm.f32), 1.0), coords=(0, t.s))

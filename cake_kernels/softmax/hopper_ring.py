"""Softmax with a load warp: the next rows arrive by bulk copy while this one is in registers."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a"))
def softmax_ring(lm, X: LM.gmem2d[LM.bf16, "ROWS", "N"], Y: LM.gmem2d[LM.bf16, "ROWS", "N"], ROWS: LM.i32, *, N=32768, WARPS=16, CTAS=1, STAGES=3, TWICE=False):
    """y = exp(x - max x) / sum exp(x - max x), one row a slot; with TWICE exponentials are computed again for the result."""
    lm.launch(grid="persistent", ctas_per_sm=CTAS)
    lm.assume(N % (WARPS * 32 * 8) == 0)
    pool = lm.smem(STAGES * N * 2 + 4 * WARPS * 4)
    row = pool.view(offset=0, shape=(N,), dtype=lm.bf16, stage=STAGES)
    tops = pool.view(offset=STAGES * N * 2, shape=(WARPS,), dtype=lm.f32, stage=2)
    sums = pool.view(offset=STAGES * N * 2 + 2 * WARPS * 4, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    load = lm.role(warps=range(WARPS, WARPS + 1))
    rows = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=rows, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=rows, prod=[work], cons=[load], arrive="warp", primed=True)
    ring = lm.pipeline(stages=2)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))
    log2e = 1.4426950408889634

    with load:
        for t in lm.tiles(sched):
            s = lm.step(rows)
            lm.wait(empty, stage=s)
            row.bulk_load(X, offset=t.r * N, n=N, stage=s, barrier=full)

    with work:
        for t in lm.tiles(sched):
            s = lm.step(rows)
            lm.wait(full, stage=s)
            x = row[s].load(form="vec")
            lm.arrive(empty, stage=s)
            c = lm.step(ring)
            if TWICE:
                top = lm.reduce(lm.cast(x, lm.f32), "max", across=work, scratch=tops[c], sync=cta)
                total = lm.reduce(lm.exp2(lm.cast(x, lm.f32) * log2e - top * log2e), "add", across=work, scratch=sums[c], sync=cta)
                y = lm.exp2(lm.cast(x, lm.f32) * log2e - (top * log2e + lm.log2(total)))
            else:
                p = lm.cast(x, lm.f32)
                top = lm.reduce(p, "max", across=work, scratch=tops[c], sync=cta)
                p = lm.exp2(p * log2e - top * log2e)
                total = lm.reduce(p, "add", across=work, scratch=sums[c], sync=cta)
                y = p * lm.rcp(total)
            lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.r), cache="stream")

"""Softmax of rows that fit in a CTA's registers: one pass over memory, two meetings a row."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def softmax(lm, X: LM.gmem2d[LM.bf16, "ROWS", "N"], Y: LM.gmem2d[LM.bf16, "ROWS", "N"], ROWS: LM.i32, *, N=4096, WARPS=8, CTAS=4, ONCE=False, TWICE=False, STREAM=True,
            EARLY=False, KEEP=False):
    """y = exp(x - max x) / sum exp(x - max x). With ONCE a CTA lives for one row and the hardware hands out the next.

    With TWICE exponentials are computed for the sum and again for the result, so that only bf16 values stay in registers. STREAM
    keeps what is read and written out of the L1, KEEP has what is read leave the caches last.
    """
    lm.launch(grid="tiles" if ONCE else "persistent", ctas_per_sm=CTAS)
    lm.assume(N % (WARPS * 32 * 8) == 0)
    pool = lm.smem(4 * WARPS * 4)
    tops = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    sums = pool.view(offset=2 * WARPS * 4, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="grid" if ONCE else "static", tiles=(ROWS,), names=("r",))
    log2e = 1.4426950408889634

    with work:
        if EARLY:
            lm.pdl_launch()                                                         # the next launch sets up while this one ends
            lm.pdl_wait()
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(N,), form="vec", cache="keep" if KEEP else "stream" if STREAM else None)
            s = lm.step(ring)
            if TWICE:
                top = lm.reduce(lm.cast(x, lm.f32), "max", across=work, scratch=tops[s], sync=cta)
                total = lm.reduce(lm.exp2(lm.cast(x, lm.f32) * log2e - top * log2e), "add", across=work, scratch=sums[s], sync=cta)
                y = lm.exp2(lm.cast(x, lm.f32) * log2e - (top * log2e + lm.log2(total)))
            else:
                p = lm.cast(x, lm.f32)
                top = lm.reduce(p, "max", across=work, scratch=tops[s], sync=cta)
                p = lm.exp2(p * log2e - top * log2e)
                total = lm.reduce(p, "add", across=work, scratch=sums[s], sync=cta)
                y = p * lm.rcp(total)
            lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.r), cache="stream" if STREAM else None)

"""RMSNorm: one row a CTA iteration in 16-byte vectors, a two-slot scratch so that one barrier a row is enough."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def rmsnorm(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], W: LM.gmem1d[LM.bf16, "D"].const, Y: LM.gmem2d[LM.bf16, "ROWS", "D"], ROWS: LM.i32, eps: LM.f32,
            *, D=4096, WARPS=8, CTAS=4, ONCE=False, LATE=False, EARLY=False, KEEP=False):
    """y = x * rsqrt(mean(x^2) + eps) * w; bound by memory bandwidth. With ONCE a CTA lives for one row and the hardware
    hands out the next; with LATE the weights are fetched after the sum of squares, when the registers are free. KEEP has what is read
    leave the caches last, so that results leave them first."""
    lm.launch(grid="tiles" if ONCE else "persistent", ctas_per_sm=CTAS)
    lm.assume(D % (WARPS * 32 * 8) == 0)
    pool = lm.smem(WARPS * 4 * 2)
    part = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="grid" if ONCE else "static", tiles=(ROWS,), names=("r",))

    with work:
        if EARLY:
            lm.pdl_launch()                                                         # the next launch sets up and fetches weights while this one ends
        if not LATE:
            w = lm.load(W, coords=(0,), shape=(D,), form="vec", cache="keep")   # weights: not written upstream
        lm.pdl_wait()                                                           # X comes from the kernel before
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(D,), form="vec", cache="keep" if KEEP else None)
            xf = lm.cast(x, lm.f32)
            s = lm.step(ring)
            ss = lm.reduce(xf * xf, "add", across=work, scratch=part[s], sync=cta)
            if LATE:
                w = lm.load(W, coords=(0,), shape=(D,), form="vec", cache="keep")
            y = xf * lm.rsqrt(ss * (1.0 / D) + eps) * lm.cast(w, lm.f32)
            lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.r))
        if not EARLY:
            lm.pdl_launch()

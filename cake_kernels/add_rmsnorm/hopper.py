"""Residual addition and RMSNorm: one row a CTA iteration in 16-byte vectors, the sum written back over the residual."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def add_rmsnorm(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], R: LM.gmem2d[LM.bf16, "ROWS", "D"], W: LM.gmem1d[LM.bf16, "D"].const,
                Y: LM.gmem2d[LM.bf16, "ROWS", "D"], ROWS: LM.i32, eps: LM.f32, *, D=4096, WARPS=8, CTAS=4, ONCE=False, LATE=False, EARLY=False, KEEP=False):
    """r = bf16(x + r) in place, y = r * rsqrt(mean(r^2) + eps) * w. With ONCE a CTA lives for one row, with LATE the weights are fetched last.

    KEEP has what is read leave the caches last, so that results leave them first: 1 to 4 % on an H200.
    """
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
            w = lm.load(W, coords=(0,), shape=(D,), form="vec", cache="keep")
        lm.pdl_wait()
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(D,), form="vec", cache="keep" if KEEP else None)
            r = lm.load(R, coords=(0, t.r), shape=(D,), form="vec", cache="keep" if KEEP else None)
            h = lm.cast(lm.cast(x, lm.f32) + lm.cast(r, lm.f32), lm.bf16)
            lm.store(R, h, coords=(0, t.r))
            hf = lm.cast(h, lm.f32)
            s = lm.step(ring)
            ss = lm.reduce(hf * hf, "add", across=work, scratch=part[s], sync=cta)
            if LATE:
                w = lm.load(W, coords=(0,), shape=(D,), form="vec", cache="keep")
            y = hf * lm.rsqrt(ss * (1.0 / D) + eps) * lm.cast(w, lm.f32)
            lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.r))
        if not EARLY:
            lm.pdl_launch()

@cake.schedule(target=("sm_89", "sm_120a"))
def add_rmsnorm_quant(lm, X: LM.gmem2d[LM.bf16, "R", "D"], RES: LM.gmem2d[LM.bf16, "R", "D"].inout, GAMMA: LM.gmem1d[LM.f32, "D"], Y: LM.gmem2d[LM.e4m3, "R", "D"], S: LM.gmem1d[LM.f32, "R"],
                      R: LM.i32, eps: LM.f32, *, D=2048, WARPS=8):
    """res += x in place, then an RMS norm of it, quantised with one scale a token."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    pool = lm.smem(2 * WARPS * 4)
    sums = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32)
    tops = pool.view(offset=WARPS * 4, shape=(WARPS,), dtype=lm.f32)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(R,), names=("r",))

    with work:
        x0 = lm.load(GAMMA, coords=(0,), shape=(D,), form="vec")
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(X, coords=(0, t.r), shape=(D,), form="vec", like=x0, cache="stream"), lm.f32)
            r = lm.cast(lm.load(RES, coords=(0, t.r), shape=(D,), form="vec", like=x0), lm.f32)
            h = lm.cast(x + r, lm.bf16)
            lm.store(RES, h, coords=(0, t.r))
            h = lm.cast(h, lm.f32)
            ms = lm.reduce(h * h, "add", axis=None, across=work, scratch=sums, sync=meet)
            y = h * lm.rsqrt(ms * (1.0 / D) + eps) * x0
            top = lm.reduce(lm.abs(y), "max", axis=None, across=work, scratch=tops, sync=meet)
            scale = lm.max(top, 1e-10) * (1.0 / 448.0)
            lm.store(Y, lm.cast(y * lm.rcp(scale), lm.e4m3), coords=(0, t.r))
            lm.store(S, scale, coords=(t.r,))

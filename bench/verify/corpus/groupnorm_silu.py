"""Group norm of channels-last images and SiLU: two passes over a group."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a"))
def groupnorm_silu(lm, X: LM.gmem3d[LM.f16, "B", "HW", "C"], gamma: LM.gmem1d[LM.f32, "C"], beta: LM.gmem1d[LM.f32, "C"],
                   Y: LM.gmem3d[LM.f16, "B", "HW", "C"], B: LM.i32, HW: LM.i32, eps: LM.f32, *, C=128, G=4, WARPS=4, ROWS=64):
    """Group norm over (pixels, C / G channels) of channels-last images, then SiLU: one CTA a group, moments in one pass, data again from L2 in the second."""
    lm.launch(grid="tiles")
    lm.assume(HW > 0)
    pool = lm.smem(2 * WARPS * 4)
    part = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(G, B), names=("g", "b"))
    with work:
        for t in lm.tiles(sched):
            c0 = t.g * (C // G)
            n = lm.cdiv(HW, ROWS)
            s1 = lm.frag(shape=(ROWS, C // G), dtype=lm.f32, form="acc", init=0)
            s2 = lm.frag(shape=(ROWS, C // G), dtype=lm.f32, form="acc", init=0)
            for i in lm.range(n):
                x = lm.cast(lm.load(X, coords=(c0, i * ROWS, t.b), shape=(ROWS, C // G), form="acc", like=s1, clip=True), lm.f32)
                s1 = s1 + x
                s2 = s2 + x * x
            sum1 = lm.reduce(s1, "add", axis=None, across=work, scratch=part[0], sync=meet)
            sum2 = lm.reduce(s2, "add", axis=None, across=work, scratch=part[1], sync=meet)
            count = lm.cast(HW * (C // G), lm.f32)
            mean = sum1 / count
            rstd = lm.rsqrt(sum2 / count - mean * mean + eps)
            for i in lm.range(n):
                x = lm.cast(lm.load(X, coords=(c0, i * ROWS, t.b), shape=(ROWS, C // G), form="acc", like=s1, clip=True), lm.f32)
                g = lm.load(gamma, coords=(c0,), shape=(C // G,), form="colvec", like=s1)
                b = lm.load(beta, coords=(c0,), shape=(C // G,), form="colvec", like=s1)
                y = lm.silu((x - mean) * rstd * g + b)
                lm.store(Y, lm.cast(y, lm.f16), coords=(c0, i * ROWS, t.b), clip=True)

"""Residual addition and RMSNorm in one pass over a row, both results written."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def add_rmsnorm(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], R: LM.gmem2d[LM.bf16, "ROWS", "D"], W: LM.gmem1d[LM.bf16, "D"].const,
                Y: LM.gmem2d[LM.bf16, "ROWS", "D"], R2: LM.gmem2d[LM.bf16, "ROWS", "D"], ROWS: LM.i32, eps: LM.f32, *, D=2048, WARPS=4):
    """R2 = X + R, Y = R2 / rms(R2) * W; a single scratch slot, so two meetings a row."""
    lm.launch(grid="persistent", ctas_per_sm=8)
    lm.assume(D % (WARPS * 32 * 8) == 0)
    pool = lm.smem(WARPS * 4)
    part = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32)
    work = lm.role(warps=range(0, WARPS))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))
    with work:
        w = lm.cast(lm.load(W, coords=(0,), shape=(D,), cache="keep"), lm.f32)
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(D,), cache="stream")
            r = lm.load(R, coords=(0, t.r), shape=(D,), cache="stream")
            h = lm.cast(lm.cast(x, lm.f32) + lm.cast(r, lm.f32), lm.bf16)
            lm.store(R2, h, coords=(0, t.r))
            hf = lm.cast(h, lm.f32)
            ss = lm.reduce(hf * hf, "add", across=work, scratch=part, sync=cta)
            lm.store(Y, lm.cast(hf * lm.rsqrt(ss * (1.0 / D) + eps) * w, lm.bf16), coords=(0, t.r))
            lm.sync(cta)                                       # the next row may write the scratch

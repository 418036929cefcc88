"""Activations to FP8 with one scale a row: maximum, scale, round."""


@cake.schedule(target=("sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def quantise_rows(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], Q: LM.gmem2d[LM.e4m3, "ROWS", "D"], SCALE: LM.gmem1d[LM.f32, "ROWS"], ROWS: LM.i32,
                  *, D=2048, WARPS=4):
    """SCALE[r] = max |X[r]| / 448, Q = X / SCALE rounded and saturated."""
    lm.launch(grid="persistent", ctas_per_sm=8)
    lm.assume(D % (WARPS * 32 * 8) == 0)
    pool = lm.smem(2 * WARPS * 4)
    part = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(X, coords=(0, t.r), shape=(D,), cache="stream"), lm.f32)
            s = lm.step(ring)
            top = lm.reduce(lm.abs(x), "max", across=work, scratch=part[s], sync=cta)
            scale = lm.max(top, 1e-12) * (1.0 / 448.0)
            lm.store(Q, lm.cast(x * lm.rcp(scale), lm.e4m3), coords=(0, t.r))
            lm.store(SCALE, scale, coords=(t.r,))
